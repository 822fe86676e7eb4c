"""The full screen: pictures as text, and keys through textual's pilot."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import pytest
from monitor_stage import NOW, HandClock, Seen, StagedHost, a_busy_run, a_host, a_plan, a_session, a_view, an_answer
from rich.cells import cell_len

from comborun.monitor.causes import shared_causes
from comborun.monitor.fullscreen.app import FullScreen
from comborun.monitor.fullscreen.desk import Desk, Log, videos_at
from comborun.monitor.fullscreen.keys import KEYS, document_lines
from comborun.monitor.fullscreen.ordering import Ordering, Orders
from comborun.monitor.fullscreen.picture import picture
from comborun.monitor.fullscreen.table import _LONGEST_SPAN, layout
from comborun.monitor.observe import RunView
from comborun.monitor.rate_interval import exact_interval
from comborun.monitor.rows import Choice, chosen
from comborun.monitor.status import Link
from comborun.monitor.table import USUAL
from comborun.monitor.watch import Settings, Source
from comborun.monitor.watcher import Watcher
from comborun.remote.logs import _PART
from comborun.remote.transport import Completed, LocalTransport
from comborun.reporter.statistics.proportion import clopper_pearson
from comborun.rules.endings.evidence import Evidence
from comborun.rules.events import Event
from comborun.rules.facts import Fact, data_of
from comborun.rules.results.fields import ResultRules
from comborun.words.times import span

SIZES = [(160, 50), (80, 24), (40, 15), (20, 5), (7, 3), (1, 1)]
MISSING = "ModuleNotFoundError: No module named 'isaacsim'"


def failed(name: str, line: str = MISSING, log: bytes = b"") -> Seen:
    says = data_of([Fact(Evidence.LOG_SAYS, said=line)])
    ended = Seen(name).ended("exited", "none", code=1, log=log, **{"class": "error"})
    return replace(ended, end={**(ended.end or {}), "ending": says})


def many(count: int = 500) -> tuple[RunView, bytes]:
    """A run of many sessions: 58 fail for one cause, 2 for another, 60 run, one stalls, the others wait."""
    plan = a_plan([a_session(f"pi{number // 20:02}", f"task{number % 20:02}") for number in range(count)], parallel=61)
    names = [one.name for one in plan.sessions]
    seen = [failed(name) for name in names[:58]]
    seen += [failed(name, f"RuntimeError: PhysX error {place}") for place, name in enumerate(names[58:60])]
    seen += [Seen(names[60], stalled=NOW - 600, changed=NOW - 600, counts=(3, 2))]
    seen += [Seen(name, gpus="12", counts=(10, 6), log=b"episode 10\n") for name in names[61:121]]
    return a_view(plan), an_answer(*seen, dispatcher=4242)


class Host(StagedHost):
    """A staged host that also has logs and events."""

    def run(self, script: str, *args: str, stdin: bytes = b"", **how: Any) -> Completed:
        if script is _PART:
            return LocalTransport().run(script, *args)
        if "tail" in script:
            happened = b'{"at":1785320000,"kind":"ended","session":"s","attempt":1,"code":3}\n'
            happened += b'{"at":1785320001.5,"kind":"ordered","order":"stop","sessions":["s"]}\n'
            people = b'{"at":1785320001.5,"user":"ann","from":"10.0.0.7","order":"stop"}\n'
            return Completed(0, happened + b"\n\0" + people, b"")
        return super().run(script, *args, stdin=stdin, **how)


def watched(view: RunView, *answers: bytes) -> Watcher:
    """A watcher that has looked once."""
    watcher = Watcher(Source(Host(answers), view), HandClock(), Settings(60))
    watcher._take(*watcher._answer())
    return watcher


def desk_of(view: RunView, answer: bytes, width: int = 160, height: int = 50) -> Desk:
    watcher = watched(view, answer)
    return Desk(watcher.look, Link(last_seen=0.4), width=width, height=height)


def text(desk: Desk) -> str:
    return "\n".join(line.plain for line in picture(desk))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("page", ["sessions", "grid", "host", "events", "runs", "help"])
def test_a_picture_fills_the_screen_exactly_whatever_its_size(size: tuple[int, int], page: str) -> None:
    desk = desk_of(*a_busy_run(), *size)
    desk.page = page
    for desk.full in (False, True):
        for desk.pane in ("log", "explain", "episodes", "video"):
            lines = picture(desk)
            assert len(lines) == size[1]
            assert max(line.cell_len for line in lines) <= size[0]


def test_a_log_keeps_its_leading_blanks_on_the_whole_screen() -> None:
    view, answer = a_busy_run()
    desk = desk_of(view, answer, 80, 24)
    desk.full = True
    lines = 'Traceback\n  File "a.py", line 1\n    import b\n'
    desk.logs[desk.session.name] = Log(lines.encode(), desk.session.attempt)
    assert lines in text(desk)


@pytest.mark.parametrize("width", [80, 40])
def test_what_explains_is_wrapped_and_not_cut(width: int) -> None:
    desk = desk_of(*many(130), width, 60)
    desk.full = True

    def shown() -> str:
        return " ".join(text(desk).split()).replace(" ", "")

    desk.pane = "explain"
    assert "comboretrytask00_pi00" in shown()
    assert "startsitagain" in shown()
    desk.pane = "episodes"
    assert MISSING.replace(" ", "") in shown()
    desk.full, desk.page = False, "help"
    assert "showsthesessionsofafoldedrow;inthegrid,acelltotheright" in shown()


def test_the_column_of_the_time_that_is_left_has_room_for_every_range_and_a_gap_before_usual_ones() -> None:
    view, answer = a_busy_run()
    column = next(one for one in layout(desk_of(view, answer).rows, 160).columns if one.title == "LEFT")
    moments = [1.25**power for power in range(72)]  # up to 100 days
    assert max(len(span(low, high)) for low, high in combinations(moments, 2)) == _LONGEST_SPAN == column.width
    assert column.width > len("31 s–2 min")


def test_the_first_row_that_is_seen_says_its_cause() -> None:
    desk = desk_of(*many(70), 80, 24)
    desk.choose(unfolded=frozenset({desk.row.name}))
    desk.move("30")
    lines = text(desk).split("\n")
    first = next(place for place, line in enumerate(lines) if "WHY" in line) + 1
    assert "58 alike" in lines[first]
    assert lines[first + 1].strip() == MISSING
    assert "= the same" in lines[first + 2]
    assert any("▸" in line for line in lines), "the cursor is seen, though the first row has become higher"


def test_a_narrow_screen_says_when_the_run_ends() -> None:
    assert "ends " in text(desk_of(*a_busy_run(), 40, 15)).split("\n")[0]


@pytest.mark.parametrize("size", SIZES[:3])
def test_every_cause_of_a_failure_is_on_the_first_screen_of_500_sessions(size: tuple[int, int]) -> None:
    shown = text(desk_of(*many(), *size))
    first = next(line for line in shown.split("\n") if "▸" in line)
    assert "58 alike" in first
    for said in (MISSING, "RuntimeError: PhysX error 0", "2 alike"):
        assert said in " ".join(shown.split()), "each cause is whole"
    assert "▸" in first


def test_a_narrow_list_has_whole_causes_names_that_differ_and_keeps_its_cursor_in_sight() -> None:
    said = [f"ValueError: no such joint in the left arm of robot {letter * 3}" for letter in ascii_lowercase[:20]]
    plan = a_plan([a_session(f"pi05_ckpt{number}000", "stack_blocks") for number in (7, 17, *range(20, 38))])
    names = [one.name for one in plan.sessions]
    few = [failed(names[0], said[0]), failed(names[1], said[1]), failed(names[2], "exit 3")]
    desk = desk_of(a_view(plan), an_answer(*few), 40, 16)
    for cause in said[:2]:
        assert cause in " ".join(text(desk).split())
    rows = [line for line in text(desk).split("\n") if "✗ pi" in line]
    assert len({line[5:14] for line in rows}) == len(rows) == 3
    assert rows[2].endswith("exit 3"), "a short cause needs no line of its own"

    desk = desk_of(a_view(plan), an_answer(*map(failed, names, said)), 40, 15)
    for step in [1] * 19 + [-1] * 19:
        desk.move(str(step))
        lines = text(desk).split("\n")
        at = next(place for place, line in enumerate(lines) if "▸" in line)
        assert lines[at + 1].startswith("    ValueError: no such joint in the"), "and its cause"
    before = desk.cursor
    desk.screenful("1")
    assert desk.cursor - before == 3, "four rows of two lines are a page"


def test_in_any_order_a_failed_row_begins_with_the_line_that_ended_it() -> None:
    desk = desk_of(*many(), 80, 24)
    desk.failed()
    desk.sort("1")
    assert desk.choice.sort == "policy"
    assert {row.why for row in desk.rows if "Module" in row.why} == {MISSING}


def test_rows_are_in_the_order_of_their_urgency() -> None:
    view, answer = a_busy_run()
    words = [row.session.word for row in chosen(watched(view, answer).look.status, Choice())]
    groups = ["failed", "orphaned", "running", "queued", "succeeded"]
    assert sorted(words, key=lambda word: groups.index("failed" if word == "partial" else word)) == words


def test_the_table_has_the_same_order() -> None:
    plan = a_plan([a_session(policy, "grass") for policy in "abcdef"])
    said = {"grass_a": "ValueError: no", "grass_b": "KeyError: 1", "grass_c": "KeyError: 2"}
    seen = [failed(name, line) for name, line in said.items()]
    desk = desk_of(a_view(plan), an_answer(*seen, Seen("grass_e")))
    names = [one.name for one in USUAL.of(desk.look.status)]
    assert names == [row.name for row in desk.rows]
    assert names == [f"grass_{policy}" for policy in "bcaedf"], "the cause of most comes first"


def test_a_row_of_many_alike_is_folded_and_opens_and_an_order_to_it_means_all() -> None:
    desk = desk_of(*many())
    assert desk.row
    assert desk.row.folded
    assert len(desk.meant) == 58
    before = len(desk.rows)
    desk.choose(unfolded=frozenset({desk.row.name}))
    assert len(desk.rows) == before + 57
    assert desk.meant == (desk.rows[0].name,)
    assert desk.rows[0].why == desk.rows[1].why == MISSING, "the page shows each"


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("state:failed", 60),
        ("st:fail why:physx", 2),
        ("state:running policy:pi03", 19),
        ("-state:queued -state:failed", 61),
        ("task07", 25),
        ("STATE:stalled,running", 61),
        ("policy:nobody", 0),
        ("cause:task18_pi02", 2),
        ("cause:task18_pi02,task00_pi00", 60),
        ("cause:task0", 0),
        ("gpu:1", 0),
        ("gpu:12", 60),
        ("", 500),
    ],
)
def test_a_filter_shows_what_fits_all_its_words(words: str, count: int) -> None:
    status = watched(*many()).look.status
    choice = Choice(words, sort="policy")
    assert len(chosen(status, choice, shared_causes(status))) == count


@pytest.mark.parametrize("place", ["pane", "host", "grid", "help"])
def test_a_key_that_changes_the_list_shows_it_and_none_changes_it_unseen(place: str) -> None:
    def there() -> Desk:
        desk = desk_of(*many())
        desk.show("sessions" if place == "pane" else place)
        desk.full = place == "pane"
        return desk

    for change in (Desk.failed, lambda desk: desk.sort("1"), Desk.reverse):
        desk = there()
        change(desk)
        assert desk.lists
        assert desk.choice != Choice()
    desk = there()
    before = desk.choice
    desk.right()
    desk.mark()
    assert (desk.choice, desk.marked, desk.lists) == (before, set(), False)
    assert "in the list" in desk.message
    assert desk.row
    desk.choose(unfolded=frozenset({desk.row.name}))
    if place != "grid":
        desk.left()
        assert desk.choice.unfolded
    desk.full = False
    desk.show("sessions")
    desk.mark()
    assert desk.marked


def test_the_interval_is_that_of_the_report() -> None:
    for n in (1, 7, 200):
        for k in {0, 1, n // 2, n}:
            assert exact_interval(k, n) == pytest.approx(clopper_pearson(k, n), abs=1e-6)
    assert exact_interval(0, 0) is None


def test_the_host_page_says_who_holds_how_much_of_a_gpu_and_reads_foreign_events() -> None:
    others = [["ann", "train.py", 20000], [1], ["x", "y", float("inf")]]
    use = {"used": 61000, "total": 81000, "sessions": {"grass_act": 41000}, "others": others}
    events = [
        Event(NOW - 60 + place, "gpu_use", gpus={"0": {**use, "used": used}}) for place, used in enumerate((1, 6e4))
    ]
    events += [Event(NOW, "gpu_use", gpus=foreign) for foreign in ("x", {"0": 3}, {"0": {"total": "?", "code": 1}})]
    plan = a_plan([a_session("act", "grass")])
    running = Seen("grass_act", gpus="0", counts=(3, 2))
    desk = desk_of(a_view(plan), an_answer(running, host=a_host((61000, 81000, 97)), dispatcher=4242))
    desk.page, desk.events = "host", events
    shown = text(desk)
    for words in ("59.6/79.1 GiB", "97 % busy", "grass_act  40.0 GiB", "ann  train.py  19.5 GiB"):
        assert words in shown


def test_the_video_pane_of_a_narrow_screen_says_its_whole_sentence() -> None:
    desk = desk_of(*a_busy_run(), 40, 15)
    desk.pane, desk.full = "video", True
    assert desk.session
    desk.videos[videos_at(desk.session)] = ()
    assert "says where they are" in " ".join(text(desk).split())
    named = ResultRules(videos=("*.mp4",))
    view = a_view(a_plan([replace(one, results=named) for one in desk.look.view.plan.sessions]))
    desk.look = desk.look._replace(view=view)
    assert "its attempts left none" in " ".join(text(desk).split())


STEPS = [f"pi0_libero_finetuned_lr1e-4_checkpoint_step_{step}00000" for step in (1, 2)]
MUGS = ["put_the_red_mug_on_the_left_plate", "put_the_red_mug_on_the_right_plate", "a", "b", "c"]


@pytest.mark.parametrize("width", [160, 80, 60])
def test_names_in_the_map_stay_different_and_a_long_one_takes_no_room_of_others(width: int) -> None:
    plan = a_plan([a_session(policy, mug) for policy in STEPS for mug in MUGS])
    desk = desk_of(a_view(plan), an_answer(*[Seen(one.name) for one in plan.sessions]), width, 50)
    desk.page = "grid"
    lines = text(desk).splitlines()
    head = next(place for place, line in enumerate(lines) if line.rstrip().endswith("mean"))
    policies = [line.split()[0 if line[0] == " " else 1] for line in lines[head + 1 : head + 3]]
    assert len({*policies}) == 2
    mugs = [name for name in lines[head].split() if "plate" in name]
    if width >= 80:
        assert len({*mugs}) == len(mugs) == 2
        assert lines[head].split()[-4:] == ["a", "b", "c", "mean"], "all are there"
    if width == 160:
        assert policies == STEPS
        assert mugs == MUGS[:2]


def test_names_that_differ_late_differ_in_the_page_of_the_host_and_in_the_events() -> None:
    plan = a_plan([a_session(policy, "put_the_red_mug_on_the_plate") for policy in STEPS])
    seen = [Seen(one.name, gpus="0", counts=(4, 2)) for one in plan.sessions]
    desk = desk_of(a_view(plan), an_answer(*seen, host=a_host((61000, 81000, 97)), dispatcher=4242), 80, 50)
    desk.events = [Event(NOW, "started", one.name, 1) for one in plan.sessions]
    for desk.page in ("host", "events"):
        ends = re.findall(r"…\S*_(\d)00000", text(desk))
        assert {*ends} == {"1", "2"}, desk.page


def test_a_mean_over_fewer_environments_says_so() -> None:
    plan = a_plan([a_session(policy, one) for policy in ("act", "bad") for one in "ab"])
    rated = [Seen(one.name, counts=(4, 2)) for one in plan.sessions[:3]]
    desk = desk_of(a_view(plan), an_answer(*rated, Seen(plan.sessions[3].name)), 80, 50)
    desk.page = "grid"
    means = [line.rsplit("50 %", 1)[-1].strip() for line in text(desk).splitlines() if "50 %" in line]
    assert sorted(means)[-2:] == ["", "of 1"]


def test_the_panes_of_a_session_that_has_not_started_say_so() -> None:
    desk = desk_of(*a_busy_run(), 160, 40)
    desk.cursor = next(at for at, row in enumerate(desk.rows) if not row.session.attempt)
    for desk.pane in ("log", "video"):
        assert f"no {desk.pane} yet: it has not started" in text(desk)


def test_a_filter_with_an_unknown_key_that_nothing_fits_names_the_keys() -> None:
    desk = desk_of(*a_busy_run(), 80, 40)
    for words, told in (("foo:bar", True), ("-x pol:zzz", False), ("zzz", False)):
        desk.filter(words)
        assert "no session fits" in text(desk)
        assert ("there is no key foo, but state, policy" in " ".join(text(desk).split())) is told


def test_a_list_of_videos_holds_until_the_attempt_ends() -> None:
    plan = a_plan([a_session("good", "maze")])
    name = plan.sessions[0].name
    runs = desk_of(a_view(plan), an_answer(Seen(name, counts=(1, 1))))
    assert runs.session
    runs.videos[videos_at(runs.session)] = ()
    runs.renew(desk_of(a_view(plan), an_answer(Seen(name, counts=(1, 1)).ended("exited", "all", code=0))).look)
    assert runs.session
    assert runs.session.alive is False
    assert runs.videos_of(runs.session) is None


@pytest.mark.parametrize("page", ["sessions", "grid", "host"])
def test_before_the_first_answer_nothing_is_said_of_sessions(page: str) -> None:
    view, _ = a_busy_run()
    watcher = Watcher(Source(Host([]), view), HandClock(), Settings(60))
    desk = Desk(watcher.look, watcher.link(), width=160, height=50)
    desk.page = page
    shown = text(desk)
    assert "asking the host" in shown
    assert not any(word in shown for word in ("queue", "0/", "load", "no log"))
    assert (desk.session, desk.meant) == (None, ())


def test_the_head_of_the_keys_is_whole_or_shorter() -> None:
    for width in (160, 80, 40):
        desk = desk_of(*a_busy_run(), width)
        desk.show("help")
        head = next(line for line in text(desk).splitlines() if line.startswith("KEYS"))
        assert head.rstrip().endswith(("5 runs", "filters)"))


HOSTILE = [
    "[bold red]x[/bold red] [/] [link=http://evil]",
    "\x1b[2J\x1b[31m\x1b]0;title\x07gone\x9b2J",
    "\u202eright to left\u2066\u200f",
    "🤖👩‍👩‍👧‍👦🇩🇪 emoji",
    "x" * 200,
    "\r\x00\x08\x7f\n",
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_in_a_log_or_a_name_never_breaks_the_screen(hostile: str) -> None:
    plan = a_plan([a_session(f"p{hostile}", f"e{hostile}"), a_session("p2", "e2")])
    name = plan.sessions[0].name
    log = f"{hostile}\n{hostile}".encode()
    seen = failed(name, hostile, log)
    for size in SIZES[:4]:
        desk = desk_of(a_view(plan), an_answer(seen, Seen("e2_p2", log=log)), *size)
        for desk.page in ("sessions", "grid", "host"):
            for desk.pane in ("log", "explain", "episodes"):
                lines = picture(desk)
                assert all(line.cell_len <= size[0] for line in lines)
                plain = "".join(line.plain for line in lines)
                assert not any(one in plain for one in "\x1b\x9b\x07\x00\x7f\r\n\u202e\u2066\u200f")
                styles = [str(span.style) for line in lines for span in line.spans]
                assert not any("link" in style or "evil" in style for style in styles)


def test_a_lost_link_says_the_age_of_the_last_contact_and_a_late_answer_too() -> None:
    desk = desk_of(*a_busy_run())
    desk.link = Link(last_seen=7.0, silent=5.0)
    assert "no answer for 5 s, last contact 7 s ago" in text(desk)
    desk.link = Link(reachable=False, last_seen=75.0, failures=2, complaint="timed out")
    assert "last contact 1 min ago" in text(desk)
    assert "timed out" in text(desk)


@pytest.mark.parametrize("width", [160, 80, 40])
def test_a_hold_is_in_the_first_line_with_its_key(width: int) -> None:
    view, answer = many(130)
    held = answer.replace(
        b'"dispatcher"', b'"hold":{"kind":"halted","since":%d,"why":"gpu_memory x3"},"dispatcher"' % NOW
    )
    assert held != answer
    first = text(desk_of(view, held, width, 24)).split("\n")[0]
    assert "HALTED" in first
    assert "[R]esume" in first


def test_every_key_of_the_table_has_its_action() -> None:
    owners = {"desk": Desk, "order": Ordering, "app": FullScreen}
    for key in KEYS:
        owner, _, name = key.action.partition(":")[0].partition(".")
        assert callable(getattr(owners[owner], name))
    names = [name for key in KEYS for name in key.names]
    assert len(names) == len(set(names))


# Keys, through textual


@dataclass
class Ordered:
    """Orders that only note what was ordered."""

    given: list[tuple[Any, ...]] = field(default_factory=list)

    def orders(self) -> Orders:
        def note(verb: str) -> Callable[..., tuple[str, ...]]:
            def take(*words: Any) -> tuple[str, ...]:
                self.given.append((verb, *words))
                return (f"{verb} done",)

            return take

        verbs = ("stop", "retry", "resume", "pause", "slots", "fleet", "words")
        return Orders("combo", " --host gpu-box", *map(note, verbs))  # type: ignore[arg-type]


def on_screen(
    act: Callable[[FullScreen, Any], Awaitable[None]], answer: tuple[RunView, bytes] | None = None, *more: bytes
) -> Ordered:
    """Press keys on a screen of 100 x 30."""
    view, first = answer or a_busy_run()
    watcher, ordered = watched(view, first, *more), Ordered()
    app = FullScreen(watcher, ordered.orders())

    async def play() -> None:
        async with app.run_test(size=(100, 30)) as pilot:
            await pilot.pause()
            await act(app, pilot)

    asyncio.run(play())
    return ordered


def shown(app: FullScreen) -> str:
    return "\n".join(line.plain for line in app.canvas.lines)


def test_keys_move_and_the_cursor_stays_on_its_session() -> None:
    async def act(app: FullScreen, pilot: Any) -> None:
        await pilot.press("j", "down", "k")
        assert app.desk.cursor == 1
        await pilot.press("G")
        last = len(app.desk.rows) - 1
        assert app.desk.cursor == last
        name = app.desk.row.name
        await pilot.press("s")
        assert app.desk.choice.sort == "policy"
        assert app.desk.row.name == name
        assert app.desk.cursor != last
        await pilot.press("g")
        assert app.desk.cursor == 0

    on_screen(act)


def test_stop_and_retry_ask_and_only_y_does_it() -> None:
    async def act(app: FullScreen, pilot: Any) -> None:
        await pilot.press("r")
        assert "Start boulder_pi0_5__flow_ again" in shown(app)
        await pilot.press("n")
        assert not app.desk.question
        await pilot.press("R")
        assert "2 sessions that ended without" in shown(app)
        await pilot.press("n")
        await pilot.press("r", "y")
        app.desk.cursor = next(place for place, row in enumerate(app.desk.rows) if row.session.word == "running")
        await pilot.press("x")
        assert "Stop" in shown(app)
        await pilot.press("enter")
        await pilot.press("x", "y")
        for _ in range(100):
            await pilot.pause(0.02)
            if "stop" in app.desk.message and "..." not in app.desk.message:
                break

    given = on_screen(act).given
    assert given == [("retry", ("boulder_pi0_5__flow_",)), ("stop", ("stairs_pi0_5__flow_",))]


def test_marked_rows_are_retried_together_and_all_that_failed_alike_with_a() -> None:
    async def act(app: FullScreen, pilot: Any) -> None:
        await pilot.press("right", "space", "space", "r", "y")
        await pilot.pause(0.2)
        await pilot.press("g", "r", "a")
        await pilot.pause(0.2)

    first, second = on_screen(act, many(130)).given
    assert len(first[1]) == 2
    assert len(second[1]) == 58


def test_the_filter_is_typed_and_escape_ends_it() -> None:
    async def act(app: FullScreen, pilot: Any) -> None:
        await pilot.press("slash", *"state:failed", "enter")
        assert {row.session.word for row in app.desk.rows} == {"failed"}
        assert "filter: state:failed" in shown(app)
        await pilot.press("escape")
        assert len(app.desk.rows) == len(app.desk.look.status.every)
        await pilot.press("f")
        assert {row.session.word for row in app.desk.rows} == {"failed", "partial"}

    on_screen(act)


def test_pages_and_panes_follow_their_keys_and_escape_leads_back() -> None:
    async def act(app: FullScreen, pilot: Any) -> None:
        await pilot.press("2", "right", "down")
        assert (app.desk.page, app.desk.cell) == ("grid", (1, 3))
        name = app.desk.session.name
        await pilot.press("escape")
        assert (app.desk.page, app.desk.row.name) == ("sessions", name)
        await pilot.press("e")
        assert app.desk.full
        assert "[explain]" in shown(app)
        await pilot.press("tab")
        assert app.desk.pane == "episodes"
        await pilot.press("escape", "4")
        await pilot.pause(0.3)
        assert "exit code 3" in shown(app)
        assert "ordered: stop s, by ann (10.0.0.7)" in shown(app)
        await pilot.press("question_mark", "slash", *"retry", "enter")
        assert "starts it again" in shown(app)
        assert "one row up" not in shown(app)
        await pilot.press("escape", "escape")
        assert app.desk.page == "sessions"

    on_screen(act)


def test_the_pane_follows_a_log_costs_no_python_and_shows_the_end_of_one_that_grows_fast(tmp_path: Path) -> None:
    name = "flat_walk"
    log = tmp_path / f"sessions/{name}/attempt-1/log"
    log.parent.mkdir(parents=True)
    log.write_text("before\n")
    view = a_view(a_plan([a_session("walk", "flat")]), directory=str(tmp_path))

    async def act(app: FullScreen, pilot: Any) -> None:
        async def until_shown(line: str) -> None:
            for _ in range(200):
                app.fetcher.need()
                await pilot.pause(0.02)
                if line in shown(app):
                    return
            raise AssertionError(shown(app))

        await until_shown("before")
        with log.open("a") as file:
            print("next", file=file)
        await until_shown("next")
        assert shown(app).count("before") == 1
        with log.open("a") as file:
            print("x\n" * (1 << 20) + "last", file=file)
        await until_shown("last")
        log.write_text("anew\n")
        await until_shown("anew")
        assert "last" not in shown(app)

    on_screen(act, (view, an_answer(Seen(name), dispatcher=4242)))


def test_the_pane_of_a_stopped_session_says_who_stopped_it() -> None:
    async def act(app: FullScreen, pilot: Any) -> None:
        await pilot.press("e")
        for _ in range(100):
            await pilot.pause(0.02)
            app.fetcher.need()
            if "by ann" in shown(app):
                return
        raise AssertionError(shown(app))

    stopped = Seen("flat_walk", started=1785320000.0).ended("stopped", "none")
    on_screen(act, (a_view(a_plan([a_session("walk", "flat")])), an_answer(stopped, dispatcher=4242)))


def test_the_mouse_chooses_rows_and_pages() -> None:
    async def act(app: FullScreen, pilot: Any) -> None:
        row = next(place for place, line in enumerate(app.canvas.lines) if "friction" in line.plain)
        await pilot.click(offset=(20, row))
        assert app.desk.row.session.environment == "friction"
        tabs = next(place for place, line in enumerate(app.canvas.lines) if "2 grid" in line.plain)
        await pilot.click(offset=(app.canvas.lines[tabs].plain.index("2 grid") + 2, tabs))
        assert app.desk.page == "grid"

    on_screen(act)


def test_a_command_is_typed_and_slots_count_from_the_last_order() -> None:
    async def act(app: FullScreen, pilot: Any) -> None:
        await pilot.press("plus", "plus", "minus")
        await pilot.press("colon", *"slots 7", "enter")
        await pilot.press("colon", *"sort success", "enter")
        assert app.desk.choice.sort == "success"
        await pilot.pause(0.3)

    assert [one for one in on_screen(act).given if one[0] == "slots"] == [("slots", number) for number in (4, 5, 4, 7)]


def test_a_new_size_is_drawn_before_anything_else_happens() -> None:
    async def act(app: FullScreen, pilot: Any) -> None:
        for size in ((20, 5), (120, 40)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert (len(app.canvas.lines), app.desk.width) == (size[1], size[0])

    on_screen(act)


def test_a_screen_that_shrinks_while_it_is_used_goes_on() -> None:
    async def act(app: FullScreen, pilot: Any) -> None:
        for width, height in ((20, 5), (3, 2), (160, 50)):
            await pilot.resize_terminal(width, height)
            await pilot.press("j", "l", "tab", "escape", "r", "n")
            assert len(app.canvas.lines) == height
            assert all(cell_len(line.plain) <= width for line in app.canvas.lines)

    on_screen(act)


def test_q_and_ctrl_c_leave_and_say_that_the_user_left() -> None:
    for key in ("q", "ctrl+c"):

        async def act(app: FullScreen, pilot: Any, key: str = key) -> None:
            await pilot.press(key)
            assert app.left

        on_screen(act)


def test_only_lines_that_have_changed_are_drawn_again() -> None:
    async def act(app: FullScreen, pilot: Any) -> None:
        await pilot.pause()
        drawn: list[Any] = []
        app.canvas.refresh = lambda *regions, **_: drawn.extend(regions)  # type: ignore[method-assign,assignment]
        app.tick()
        assert not drawn
        app.watcher._clock.passed += 1  # type: ignore[attr-defined]
        app.tick()
        assert 0 < len(drawn) < 10

    on_screen(act)


def test_the_documents_name_every_key_and_every_column() -> None:
    text_of = (Path(__file__).parents[3] / "docs/watching.md").read_text("utf-8")
    for line in document_lines():
        assert line in text_of
    for column in layout(desk_of(*a_busy_run()).rows, 300).columns:
        assert column.title in text_of


def test_a_question_and_its_answers_fit_a_tiny_screen() -> None:
    desk = desk_of(*many(130))
    desk.width, desk.height = 20, 5
    desk.ask(["Start stack_blocks_pi00 again?"], {"y": ("retry 1 session", lambda: None)})
    shown = " ".join(line.plain.strip() for line in picture(desk))
    assert "Start stack_blocks_pi00 again? y retry 1 session any other key: no" in " ".join(shown.split())


@pytest.mark.parametrize("width", [40, 60])
def test_a_narrow_screen_says_that_a_filter_is_on_and_how_many_rows_fit(width: int) -> None:
    desk = desk_of(*many(70), width, 15)
    desk.choose(words="state:failed,partial,lost policy:pi")
    (line,) = (one for one in text(desk).split("\n") if "filter: sta" in one)
    assert line.endswith(f"1 of {len(desk.rows)} ─")


def test_a_passing_message_goes_with_the_next_look_and_another_one_stays() -> None:
    desk = desk_of(a_view(a_plan([])), an_answer())
    desk.say("looking ...", passing=True)
    desk.renew(desk.look)
    assert not desk.message
    desk.say("copied: it")
    desk.renew(desk.look)
    assert desk.message == "copied: it"
