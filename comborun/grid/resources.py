"""The keys `resources`, `reserve` and `use_gpus`: what sessions need of the host, and what of it they leave alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from comborun.errors import Problem
from comborun.grid.shapes import ONE_OR_MANY, Keys, key
from comborun.grid.values import GpuCount, Memory, NotNegative, Positive, Token
from comborun.resources import Request, Reserve, mebibytes
from comborun.text import several

if TYPE_CHECKING:
    from comborun.grid.axes import Combo
    from comborun.grid.draft import Draft

GpuIndexes = Annotated[tuple[NotNegative, ...], ONE_OR_MANY]
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_HINT = "`gpus: 1` beside it, since it is memory of each GPU that is granted"


class ResourceKeys(Keys):
    gpus: GpuCount = key("GPUs that a session is granted", 0)
    gpu_memory: Memory = key("memory that it takes on each of them; without it one has its GPU alone", 0)
    cpus: Positive | None = key("cores that it keeps busy")
    memory: Memory = key("main memory that it takes", 0)
    exclusive: Annotated[tuple[Token, ...], ONE_OR_MANY] = key(
        "names of what only one session on the host may have at a time, such as `ray`", ()
    )
    per_gpu: Positive | None = key("sessions of one environment on a GPU, at most")
    per_host: Positive | None = key("sessions of one environment on the host, at most")

    @property
    def request(self) -> Request:
        """Beside the number of GPUs."""
        return Request(
            gpu_memory=mebibytes(self.gpu_memory),
            cpus=self.cpus or 0,
            memory=mebibytes(self.memory),
            tokens=self.exclusive,
            per_gpu=self.per_gpu or 0,
            per_host=self.per_host or 0,
        )


class ReserveKeys(Keys):
    """What sessions leave alone, for a training job say, whether it uses it now or not."""

    gpu_memory: Memory = key("memory of each GPU", 0)
    cpus: NotNegative = key("cores", 0)
    memory: Memory = key("main memory", 0)

    @property
    def kept(self) -> Reserve:
        return Reserve(mebibytes(self.gpu_memory), self.cpus, mebibytes(self.memory))


def resource_problems(draft: Draft) -> Iterator[Problem]:
    """GPU memory where no GPU is granted, to sessions or to a server; more GPUs than may be used."""
    if not any(_has_gpu(combo) for combo in draft.combos):
        message = "`resources` has `gpu_memory` and no `gpus`: {} would get no GPU at all"
        yield from draft.of(_lacking(draft), draft.setter("resources", "gpu_memory"), message, _HINT)
    for name, keys in draft.file.servers.items():
        if keys.resources.gpu_memory and not keys.resources.gpus and keys.per != "gpu":
            message = f"`resources` has `gpu_memory` and no `gpus`: the server `{name}` would get no GPU at all"
            yield draft.at_key(("servers", name, "resources", "gpu_memory"), message, _HINT)
    if (allowed := draft.file.use_gpus) is None:
        return
    if len(set(allowed)) < len(allowed):
        yield draft.at_value(("use_gpus",), "`use_gpus` names a GPU twice", "name each once")
    most = max((combo.settings.gpus for combo in draft.combos), default=0)
    if most > len(set(allowed)):
        message = f"a session asks for {several(most, 'GPU')}, and `use_gpus` allows {len(set(allowed))}"
        yield draft.at_value(("use_gpus",), message, "allow more, or lower `resources: {gpus: N}`")


def resource_warnings(draft: Draft) -> Iterator[Problem]:
    """GPU memory of some combos that are granted no GPU: it may be meant; GPUs without a use, or hidden."""
    place = draft.setter("resources", "gpu_memory")
    message = "`gpu_memory` without `gpus`: {} gets no GPU"
    yield from draft.of(_lacking(draft), place, message, "`gpus: 1`, or `gpu_memory: 0` where that is meant")
    granted = draft.where(_has_gpu)
    if draft.file.use_gpus is not None and not granted:
        message = "`use_gpus` without a combo that asks for a GPU"
        yield draft.at_key(("use_gpus",), message, "`resources: {gpus: 1}`")
    if any("{gpu" not in combo.settings.variables.get(_VISIBLE, "{gpu") for combo in granted):
        message = f"`variables` sets {_VISIBLE}, and so hides which GPU a session was granted"
        yield draft.at_key(("variables", _VISIBLE), message, "leave it to comborun")


def _has_gpu(combo: Combo) -> bool:
    return bool(combo.settings.gpus or combo.settings.placement)


def _lacking(draft: Draft) -> list[Combo]:
    """Combos with GPU memory and no GPU; none where the grid says `gpus: 0` on purpose, for a preset's program."""
    resources = draft.file.resources
    if "gpus" in resources.model_fields_set and not resources.gpus:
        return []
    return draft.where(lambda combo: combo.settings.resources.gpu_memory and not _has_gpu(combo))
