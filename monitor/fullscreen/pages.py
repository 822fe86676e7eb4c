"""The pages beside the list: the grid, the host, the events, the runs of all hosts, the keys. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from comborun.monitor import gpu_samples
from comborun.monitor.columns import apart, bar, clipped, cut
from comborun.monitor.fleet import FleetRow
from comborun.monitor.fleet_table import Layout
from comborun.monitor.fullscreen.keys import KEYS, PAGES
from comborun.monitor.fullscreen.pane import wrapped
from comborun.monitor.fullscreen.table import symbol
from comborun.monitor.gpu_samples import GpuSample
from comborun.monitor.grid_map import GridMap, MapCell
from comborun.monitor.snapshot import HostUse
from comborun.monitor.status import RunStatus, SessionStatus
from comborun.monitor.table import box_line, server_line
from comborun.monitor.wording import sizes, visible
from comborun.rules.events import Event, Kind
from comborun.rules.room.capacity import Card
from comborun.rules.vocabulary import Life, Outcome, amount
from comborun.text import MIB, printable
from comborun.words.events import say_event
from comborun.words.times import brief, clock, clocks

_BLOCKS = " ▁▂▃▄▅▆▇█"
_NARROWEST_CELL, _NARROW_CELL, _WIDE_CELL = 7, 10, 14
_MEAN = 12
"""cells of `100 % of 12`"""
_STYLES: Mapping[str, str] = {
    Kind.ENDED: "", Kind.HALTED: "bold red", Kind.LOST: "magenta", Kind.QUARANTINE: "yellow", Kind.GPU_CAP: "yellow",
    Kind.NO_ROOM: "yellow", Kind.NOT_BEGUN: "yellow", Kind.ORDERED: "bold", Kind.AMENDED: "bold",
}  # fmt: skip


class Page(NamedTuple):
    head: Text
    lines: Sequence[Text]


class Sample(NamedTuple):
    """What the host had at one look."""

    at: float
    use: HostUse


# The grid


def grid(found: GridMap, cursor: tuple[int, int], width: int) -> Page:
    """The head, and a line for each policy; columns around the cursor if not all fit.

    A cell has the state, then successes of episodes with a verdict, else episodes done; the last column is the mean,
    with the number of environments that have a rate if not all have one.
    """
    policies = {row.policy: visible(row.policy) for row in found.rows}
    environments = [visible(one) for one in found.environments]
    longest = max(map(cell_len, policies.values()), default=0)
    firsts = max(8, min(longest, 28, width // 3)), max(8, min(longest, 16))
    cells = [[_cell(cell) for cell in row.cells] for row in found.rows]
    own = [
        max(_NARROWEST_CELL, cell_len(name), *(row[at].cell_len for row in cells))
        for at, name in enumerate(environments)
    ]
    fitting = (
        (first, most)
        for first in firsts
        for most in range(max(own, default=0), _NARROW_CELL, -1)
        if _needed(own, most) <= width - first - 3 - _MEAN
    )
    first, most = next(fitting, (firsts[1], _WIDE_CELL))
    room = width - first - 3 - _MEAN
    columns = [min(one, most) for one in own]
    begin, end = _around(columns, cursor[1], room)
    if end - begin == len(columns):
        first = max(first, min(longest, first + room - _needed(columns, room)))
    hidden = len(columns) - (end - begin)
    head = Text(clipped(f"{hidden} more ←→" if hidden else "", first + 2) + " ", "dim")
    short = {width: apart([*environments], width) for width in {*columns}}
    for at in range(begin, end):
        head.append(short[columns[at]][environments[at]] + " ")
    head.append("mean")
    lines, called = [], apart([*policies.values()], first)
    for place, row in enumerate(found.rows):
        line = Text(("▸ " if place == cursor[0] else "  ") + called[policies[row.policy]] + " ", no_wrap=True)
        for at in range(begin, end):
            cell = cells[place][at].copy()
            cell.truncate(columns[at], overflow="ellipsis", pad=True)
            if (place, at) == cursor:
                cell.stylize("reverse")
            cell.apply_meta({"act": ("cell", place, at)})
            line.append_text(cell).append(" ")
        known = row.mean is not None
        line.append(f"{100 * (row.mean or 0):.0f} %" if known else "-", "bold" if known else "dim")
        some = known and row.environments < len(environments)
        lines.append(line.append(f" of {row.environments}" if some else "", "dim"))
    return Page(head, lines)


def _needed(columns: Sequence[int], most: int) -> int:
    """Cells of columns that have at most so many each."""
    return sum(min(one, most) + 1 for one in columns)


def _around(columns: Sequence[int], at: int, room: int) -> tuple[int, int]:
    """The first one that is shown and the one behind the last: as many as fit, with that of the cursor."""
    begin, end = 0, min(at + 1, len(columns))
    while begin < end - 1 and _needed(columns[begin:end], room) > room:
        begin += 1
    while end < len(columns) and _needed(columns[begin : end + 1], room) <= room:
        end += 1
    return begin, end


def _cell(cell: MapCell | None) -> Text:
    if cell is None:
        return Text()
    text = symbol(cell.urgent.word)
    known = cell.successes is not None and cell.recorded
    share = f"{100 * cell.done // cell.planned} %" if cell.done and cell.planned else ""
    return text.append(f" {cell.successes}/{cell.recorded}" if known else f" {share}")


# The host


def host(status: RunStatus, samples: Sequence[Sample], found: Sequence[Event], width: int) -> Page:
    """Each GPU with its users and its past, the use of the machine, and what ends and starts next."""
    if status.hosts:
        lines = list(_several(status, width))
    else:
        past = list(gpu_samples.samples(found))
        lines = [line for card in status.use.gpus for line in _gpu(card, status, past, width)]
        if not lines:
            lines = [Text("the run uses no GPU", "dim")]
        lines += [Text(), *_machine(status, samples, width), Text()]
    lines += [server_line(one, status.now, status.server_waits.get(one.name), width) for one in status.servers]
    head = Text(f"{visible(status.host)}: GPUs by session and by other user, the machine, what comes next", "dim")
    return Page(cut(head, width), [*lines, *_slots(status, width)])


def _several(status: RunStatus, width: int) -> Iterator[Text]:
    """Of each host its GPUs with their sessions and its machine, or why they are not known."""
    for one in status.hosts:
        line = box_line(one._replace(use=HostUse()), len(one.host))
        line.stylize("bold", 0, len(visible(one.host)))
        yield cut(line, width)
        if one.link.reachable and not one.lost:
            sessions = tuple(each for each in status.sessions if each.host == one.host)
            own = replace(status, use=one.use, sessions=sessions)
            yield from (line for card in one.use.gpus for line in _gpu(card, own, (), width))
            yield from _machine(own, (), width)
        yield Text()


def _gpu(card: Card, status: RunStatus, found: Sequence[GpuSample], width: int) -> Iterator[Text]:
    name, past = f"GPU {card.index}", [one for one in found if one.gpu == card.index]
    if card.used is None or not card.total:
        yield Text(f"{name} unknown: nvidia-smi has no row for it", "yellow")
        return
    line = Text(f"{name:<8}").append_text(bar(card.used, card.total, max(8, min(40, width - 50)), "cyan"))
    line.append(f" {sizes(card.used * MIB, card.total * MIB)}")
    line.append(f"  {card.utilization} % busy" if card.utilization is not None else "")
    yield line.append(f"  {visible(card.name, 24)}" if width >= 100 else "", "dim")
    indent = " " * 8
    if len(past) > 1:
        drawn = curve([one.used / one.total for one in past], width - 24)
        yield Text(f"{indent}{drawn}", "cyan").append(f" since {clock(past[-len(drawn)].at, near=status.now)}", "dim")
    held = past[-1].sessions if past else {}
    ours = [one for one in status.busy if card.index in one.gpus]
    names = apart({visible(one.name) for one in ours[:6]}, max(12, width - 48))
    for one in ours[:6]:
        size = f"  {amount(held[one.name] * MIB)}" if one.name in held else ""
        end = f"  ends about {clock(one.expected.likeliest, near=status.now)}" if one.expected else ""
        line = Text(indent).append_text(symbol(one.word)).append(f" {names[visible(one.name)].rstrip()}")
        yield line.append(size).append(end, "dim")
    if len(ours) > 6:
        yield Text(f"{indent}and {len(ours) - 6} more sessions", "dim")
    for (who, what), mib in past[-1].others.items() if past else ():
        yield Text(f"{indent}  {visible(who, 20)}  {visible(what, 30)}  {amount(mib * MIB)}", "magenta")


def curve(shares: Sequence[float], width: int) -> str:
    """Shares from 0 to 1 as blocks, the newest at the right."""
    shown = list(shares)[-max(1, width) :]
    return "".join(_BLOCKS[round(max(0.0, min(1.0, share)) * (len(_BLOCKS) - 1))] for share in shown)


def _machine(status: RunStatus, samples: Sequence[Sample], width: int) -> Iterator[Text]:
    use = status.use
    if use.load is not None and use.cpus:
        past = curve([(one.use.load or 0) / use.cpus for one in samples], width - 40)
        yield Text(f"{'load':<8}{use.load:.3g} of {use.cpus} cores  ").append(past, "cyan")
    for name, room in (("memory", use.memory), ("disk", use.disk)):
        if room:
            free = sizes(room.free, room.total)
            full = _disk_full_in(samples) if name == "disk" else ""
            yield Text(f"{name:<8}{free} free{full}", "yellow" if room.scarce else "")


def _disk_full_in(samples: Sequence[Sample]) -> str:
    """`, full in 3.0 d` by what the last looks show; empty if it does not fill, or too little is known."""
    found = [(one.at, disk.free) for one in samples if (disk := one.use.disk)]
    if len(found) < 2 or found[-1][0] - found[0][0] < 60 or found[0][1] <= found[-1][1]:
        return ""
    (first, before), (last, now) = found[0], found[-1]
    return f", full in {brief(now / (before - now) * (last - first))}"


def _slots(status: RunStatus, width: int) -> Iterator[Text]:
    """The running sessions by their expected end, then those that come next."""
    if status.finished or status.now is None:
        return
    busy = sorted(status.busy, key=lambda one: one.likely_end or float("inf"))
    queued = [one for one in status.sessions if one.life is Life.QUEUED][:10]
    names = apart({visible(one.name) for one in (*busy, *queued)}, max(16, min(48, width - 40)))
    if busy:
        yield Text("runs, by its expected end:", "dim")
    for one in busy:
        yield _expected(one, names[visible(one.name)], status.now)
    if queued:
        yield Text("comes next:", "dim")
    for one in queued:
        yield _expected(one, names[visible(one.name)], status.now)


def _expected(one: SessionStatus, name: str, now: float) -> Text:
    line = symbol(one.word).append(f" {name}")
    line.append(f"  {visible(one.host, 12)}" if one.host else "")
    line.append(f"  GPU {','.join(map(str, one.gpus))}" if one.gpus else "")
    if one.expected:
        line.append(f"  ends {clocks(one.expected.earliest, one.expected.latest, now)}")
    return line


# Events and runs


def events(found: Sequence[Event] | None, notes: Sequence[str], now: float | None, width: int) -> Page:
    """The notes of now, then what has happened, the newest first."""
    lines = [line for one in notes for line in wrapped(printable(one), width, "! ")]
    for line in lines:
        line.style = "yellow"
    if found is None:
        return Page(Text("TIME", "dim"), [*lines, Text("asking the host ...", "dim")])
    name = max(10, min(36, width // 4))
    longest = max((len(visible(one.host)) for one in found), default=0)
    box = longest and max(len("HOST"), min(12, longest))
    gap = "  " * bool(box)
    names = apart({visible(one.session) for one in found}, name)
    for one in reversed([one for one in found if one.kind != Kind.GPU_USE]):
        style = _STYLES.get(one.kind, "dim")
        if one.kind == Kind.ENDED and one.fields.get("outcome") != Outcome.SUCCEEDED:
            style = "red"
        line = Text(f"{_when(one.at, now):<9} ", "dim").append(clipped(visible(one.host), box) + gap)
        line.append(names[visible(one.session)], style)
        said = printable(visible(say_event(one)))
        lines.append(line.append(f"  {clipped(said, max(1, width - line.cell_len - 2))}".rstrip(), style))
    head = Text(
        f"{'TIME':<9} {clipped('HOST', box)}{gap}{clipped('SESSION', name)}  WHAT HAPPENED, THE NEWEST FIRST", "dim"
    )
    return Page(head, lines or [Text("nothing is recorded", "dim")])


def _when(at: float, now: float | None) -> str:
    return clock(at) if now is not None and now - at < 43200 else clock(at, near=now)


def runs(found: Sequence[FleetRow] | None, here: str, width: int, now: float) -> Page:
    """The runs on all hosts, those that go on first."""
    if not found:
        return Page(Text("RUN", "dim"), [Text("asking all hosts ..." if found is None else "no runs are known", "dim")])
    rows = sorted(found, key=lambda row: row.run.finished)
    layout = Layout(rows, width - 2, now)
    lines = [Text("▸ " if here in row.ids else "  ").append_text(layout.line(row)) for row in rows]
    late = {one.host: one.complaint for row in rows for one in row.each if one.complaint}
    lines += [Text(f"! {visible(host)}: {visible(why)}", "yellow") for host, why in late.items()]
    return Page(Text("  ").append_text(layout.head()), lines)


# Help


def help_lines(words: str, width: int) -> Page:
    """The keys, those that fit the words of a filter."""
    lines: list[Text] = []
    for key in KEYS:
        if words.casefold() in f"{key.shown} {key.short} {key.does} {key.more}".casefold():
            lines += _meaning(key.shown, f"{key.does}  {key.more}" if width >= 60 else key.does, width)
    legend: Mapping[str, str] = {
        "QUIET": "time since the newest record, output or line of its log",
        "LEFT": "time until it ends, as a range of 80 %",
        "95 %": "exact interval of its success rate, in percent",
        "TRY": "number of its latest attempt",
        "(3 alike)": "sessions that failed with the same message; more than three are folded into one row",
        "filter": "state:failed policy:pi0 environment:, name:, gpu:, why: or any word; - before it means not",
    }
    lines += [Text(), *(line for word, means in legend.items() for line in _meaning(word, means, width))]
    pages = "  ".join(f"{place} {name}" for place, name in enumerate(PAGES, 1))
    head = ("KEYS (Esc leaves, / filters)", f"   pages: {pages}")
    return Page(Text("".join(head if sum(map(len, head)) <= width else head[:1]), "dim"), lines)


def _meaning(word: str, means: str, width: int) -> Iterator[Text]:
    lead = f"  {word:<12}"
    for line in wrapped(means.strip(), width, lead):
        line.stylize("bold", 0, len(lead))
        yield line
