"""How the components of sessions lie on the GPUs of a host, as lines of `combo plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.model.placement import claimed, copies_text, gibibytes, layouts, memory_on, on_gpu
from comborun.model.work import grouped
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.model.placement import Budgets, Component, Layout
    from comborun.model.plan import Plan


def placement_lines(plan: Plan, free: Budgets) -> Iterator[str]:
    by_components = grouped((session for session in plan.sessions if session.components), lambda one: one.components)
    for components, sessions in by_components.items():
        names = [session.name for session in sessions]
        yield f"placement of {names[0] if len(names) == 1 else f'{len(names)} sessions, {names[0]} the first'}"
        yield from _gpu_lines(components, free)
        yield from _component_lines(components)
        yield from _layout_lines(layouts(components, free), free)


def _gpu_lines(components: Sequence[Component], free: Budgets) -> Iterator[str]:
    rows: dict[int, str] = {}
    for gpu in claimed(components):
        there = ((one, number, one.copies // len(one.processes)) for one, number in on_gpu(components, gpu))
        rows[gpu] = " + ".join(f"{one.name} {number}{copies_text(copies)}" for one, number, copies in there)
    width = max(map(len, rows.values()), default=0)
    for gpu, text in rows.items():
        memory, room = memory_on(components, gpu), free[gpu]
        taken = gibibytes(memory) if memory else "memory not said"
        yield f"  GPU {gpu}  {text.ljust(width)}  {taken}" + (f" of {gibibytes(room)}" if room is not None else "")


def _component_lines(components: Sequence[Component]) -> Iterator[str]:
    for component in components:
        if not component.gpus:
            yield f"  {component.name}: {_several_processes(component)} without a GPU"
    for component in components:
        if component.copies:
            yield f"  {component.name}: {component.copies} in all, for {_several_processes(component)}"
    if videos := sum(component.videos * len(component.processes) for component in components):
        yield f"  videos to expect: {videos}"


def _several_processes(component: Component) -> str:
    return several(len(component.processes), "process", "processes")


def _layout_lines(found: Sequence[Layout], free: Budgets) -> Iterator[str]:
    if not found:
        return
    smallest = min((room for room in free.values() if room is not None), default=None)
    offering = f", which offer {gibibytes(smallest)} each" if smallest is not None else ""
    yield f"  layouts for this host of {len(free)} GPU{'s' * (len(free) != 1)}{offering}:"
    kinds = max(len(layout.kind) for layout in found)
    width = max(len(layout.description) for layout in found)
    for layout in found:
        memory = f"fits, {gibibytes(layout.memory)} at most" if layout.memory else "memory not said"
        yield f"    {layout.kind.ljust(kinds)}  {layout.description.ljust(width)}  {layout.problem or memory}"
