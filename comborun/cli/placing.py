"""What `combo plan` says of GPUs: whose they are, what components take of them, and which layouts fit the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.amounts import several
from comborun.components import claimed, gibibytes, layouts, memory_on, on_gpu, videos_of
from comborun.planner import rooms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.components import Component, Layout, Room
    from comborun.facts import HostFacts
    from comborun.plan import Plan


def placement_lines(plan: Plan, host: HostFacts) -> Iterator[str]:
    """A block for each placement of the plan, with the sessions that have it; nothing where none has one."""
    free = rooms(host, plan.reserve)
    found = dict.fromkeys(session.components for session in plan.sessions if session.components)
    for components in found:
        names = [session.name for session in plan.sessions if session.components == components]
        yield f"placement of {names[0] if len(names) == 1 else f'{len(names)} sessions, {names[0]} the first'}"
        yield from _gpu_lines(components, free)
        yield from _component_lines(components)
        yield from _layout_lines(layouts(components, free), free)


def gpu_rows(plan: Plan) -> dict[str, str]:
    """Which GPUs sessions may be given; those of model servers are told with these."""
    asking = [session for session in plan.sessions if session.gpus]
    if not asking:
        return {}
    allowed = sorted({gpu for session in asking for gpu in session.request.only or plan.gpus})
    return {"GPUs": ", ".join(map(str, allowed))} if allowed else {}


def _gpu_lines(components: Sequence[Component], free: Sequence[Room]) -> Iterator[str]:
    offered = {room.gpu: room.mib for room in free}
    rows = [(gpu, " + ".join(_process(*one) for one in on_gpu(components, gpu))) for gpu in claimed(components)]
    width = max((len(text) for _, text in rows), default=0)
    for gpu, text in rows:
        memory, room = memory_on(components, gpu), offered[gpu]
        taken = gibibytes(memory) if memory else "memory not said"
        yield f"  GPU {gpu}  {text.ljust(width)}  {taken}" + (f" of {gibibytes(room)}" if room is not None else "")


def _process(component: Component, number: int) -> str:
    copies = component.copies // len(component.processes)
    return f"{component.name} {number}" + (f" ({several(copies, 'copy', 'copies')})" if copies else "")


def _component_lines(components: Sequence[Component]) -> Iterator[str]:
    for component in components:
        if not component.gpus:
            yield f"  {component.name}: {_processes(component)} without a GPU"
    for component in components:
        if component.copies:
            yield f"  {component.name}: {component.copies} in all, for {_processes(component)}"
    if videos := videos_of(components):
        yield f"  videos to expect: {videos}"


def _processes(component: Component) -> str:
    count = len(component.processes)
    return several(count, "process", "processes")


def _layout_lines(found: Sequence[Layout], free: Sequence[Room]) -> Iterator[str]:
    if not found:
        return
    smallest = min((room.mib for room in free if room.mib is not None), default=None)
    offering = f", which offer {gibibytes(smallest)} each" if smallest is not None else ""
    yield f"  layouts for this host of {len(free)} GPU{'s' * (len(free) != 1)}{offering}:"
    kinds = max(len(layout.kind) for layout in found)
    told = max(len(layout.told) for layout in found)
    for layout in found:
        memory = f"fits, {gibibytes(layout.memory)} at most" if layout.memory else "memory not said"
        yield f"    {layout.kind.ljust(kinds)}  {layout.told.ljust(told)}  {layout.problem or memory}"
