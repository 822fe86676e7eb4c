"""The page of `combo view` in a real browser: a run from its start to its end, and a copy of it from disk."""

from __future__ import annotations

import getpass
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from box import until
from desk import Desk
from markupsafe import Markup
from monitor_stage import Seen, a_hold, a_host, a_plan, a_session, a_view, an_answer, look_at
from sshd import fresh_user, running_sshd

from comborun.monitor.classify import classify
from comborun.monitor.fleet import FleetRow
from comborun.monitor.view.pages import HERE, Site, of_hosts, of_run, render
from comborun.monitor.watch import Look
from comborun.remote.runs import Run

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason="Chromium is not here"),
    pytest.mark.timeout(400),
]

EVALUATOR = """
import json, os, shutil, sys, time
policy, place, count, out, gate, clip = sys.argv[1:]
for episode in range(int(count)):
    while episode == 3 and not os.path.exists(gate):
        time.sleep(0.05)
    if policy == "poor" and place == "field":
        raise RuntimeError("<img src=x onerror=\\"document.title='owned'\\"> of " + os.environ["HOME"])
    shutil.copy(clip, f"{out}/episode_{episode}.mp4")
    with open(f"{out}/rows.jsonl", "a") as file:
        row = {"policy": policy, "environment": place, "episode": episode, "seed": 7 + episode,
               "success": (policy == "good") == (episode > 0), "video": f"episode_{episode}.mp4"}
        print(json.dumps(row), file=file, flush=True)
    print(f"{place}: {episode}\\rsaid episode {episode} <script>document.title='owned'</script>", flush=True)
"""
LINE = 20
"""pixels, at least"""
A4 = 703
"""pixels between the margins of a page on paper"""
SHOWN = "document.querySelectorAll('#sessions tbody tr:not([hidden])').length"
LONG_LOG = """async () => {
    const real = part, after = (text) => {
        part = async () => ({ start: 0, end: log.end + 9, size: log.end + 9, text });
        return follow();
    };
    for (let at = 0; at < 200; at += 1) await after(`\\rpass ${at} of a bar`);
    const bar = log.pending;
    for (let at = 0; at < 6; at += 1) await after(`\\n${"x".repeat(1e6 - 1)}`);
    part = real;
    return [bar, 1e6 * Math.round($("lines").textContent.length / 1e6)];
}"""
"""what a tab keeps of a bar that is drawn for hours, and of six million characters"""
SCREENS = ("", "cell/field_poor", "rollouts", "host", "report", "hosts")


def a_clip(path: Path) -> None:
    """A second of video."""
    av = pytest.importorskip("av", reason="PyAV is not installed")
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for _ in range(10):
            file.mux(stream.encode(av.VideoFrame(64, 48, "yuv420p")))
        file.mux(stream.encode(None))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium: Any) -> Iterator[Any]:
    """A page of a browser that knows nothing of the pages before it."""
    with chromium.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(60_000)
        yield page


@pytest.fixture
def gate(desk: Desk) -> Path:
    """A run whose last episodes begin when this file is there."""
    gate, clip, program = (desk.home / name for name in ("gate", "clip.mp4", "evaluate.py"))
    a_clip(clip)
    program.write_text(EVALUATOR)
    python, *files = (shlex.quote(str(path)) for path in (sys.executable, program, gate, clip))
    words = "{policy} {environment} {episodes} {output_dir}"
    command = f"{python} {files[0]} {words} {files[1]} {files[2]}"
    desk.launched(4, command=command, results="{videos: '**/*.mp4'}", poll="1")
    return gate


def holds(tab: Any, expression: str) -> None:
    """Wait until an expression holds. `wait_for_function` of Playwright needs eval, which the page forbids."""
    until(lambda: tab.evaluate(expression), expression, 60)


def serving(desk: Desk, *options: str) -> tuple[subprocess.Popen[str], str]:
    """The server of the page, and the address that it says."""
    process = subprocess.Popen(
        desk.command("view", "--no-browser", *options),
        env=desk.environment, cwd=desk.home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert process.stdout
    line = process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+/[0-9a-f]+/#[\w-]+", line)
    assert found, line + process.stdout.read()
    return process, found[0]


def ended(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=30)[0]


def test_a_run_is_followed_from_its_start_to_its_end_on_every_screen(desk: Desk, gate: Path, tab: Any) -> None:
    process, address = serving(desk)
    base, key = address.split("#")
    tab.goto(base)
    assert "needs its key" in tab.inner_text("main")
    assert desk.runs[-1].name not in tab.content()
    tab.goto("about:blank")
    tab.goto(address)
    tab.wait_for_selector("#sessions tr")
    assert key not in tab.url
    tab.wait_for_selector(".big:has-text('56 %')")
    tab.wait_for_selector(".alerts :text('RuntimeError')")

    # A filter has an address, and so has a cell; the back button leads back
    tab.click("a.chip.failed")
    holds(tab, f"{SHOWN} === 1")
    assert tab.url.endswith("?q=state%3Afailed")
    tab.click("#sessions tbody tr:visible a")
    tab.wait_for_selector("#lines:has-text('RuntimeError')")
    tab.go_back()
    holds(tab, f"{SHOWN} === 1")
    tab.reload()
    holds(tab, f"{SHOWN} === 1")

    # What is typed stays, although the page is renewed meanwhile and its alerts come and go
    tab.goto(base)
    alerts = "document.querySelector('.alerts').remove()"
    for word, change in (("state:fai", ""), ("led ", ""), ("pol", alerts), ("icy:poor", "")):
        tab.keyboard.press("/") if word == "state:fai" else None
        tab.keyboard.type(word)
        tab.evaluate(f"{change or 'null'}; tag = ''; refresh()")
        tab.wait_for_selector(".alerts")
        tab.wait_for_timeout(300)
    assert tab.input_value("input[type=search]") == "state:failed policy:poor"

    # A key leads to the same screen from everywhere
    for screen in ("", "cell/field_poor"):
        tab.goto(base + screen)
        tab.wait_for_selector(".vitals")
        tab.keyboard.press("3")
        tab.wait_for_url(f"{base}host")

    # A log follows; of a bar the last state stays
    tab.goto(f"{base}cell/maze_good")
    tab.wait_for_selector("#lines:has-text('said episode 2')")
    assert "maze: 2" not in tab.inner_text("#lines")
    tab.wait_for_selector("#log-size:text-matches('attempt 1, [1-9][0-9]+ bytes')")
    assert tab.evaluate(LONG_LOG) == ["pass 199 of a bar", 4_000_000]

    # Videos of one seed play on one playhead
    tab.goto(f"{base}rollouts?at=maze_poor:1")
    holds(tab, "document.querySelectorAll('video').length === 2")
    holds(tab, "[...document.querySelectorAll('video')].every((one) => one.readyState > 1)")
    tab.click("#play")
    holds(tab, "[...document.querySelectorAll('video')].every((one) => one.ended)")

    for screen in SCREENS:
        tab.goto(base + screen)
        tab.wait_for_selector({"report": ".figures", "hosts": "#runs tr.at"}.get(screen, ".vitals"))
        tab.wait_for_timeout(300)
        found = axe.Axe().run(tab).response["violations"]
        assert not found, [(one["id"], one["nodes"][0]["html"]) for one in found]
    tab.goto(base)
    gate.touch()
    tab.wait_for_selector("#ago:has-text('the run has ended')")
    tab.wait_for_selector(".big:has-text('75 %')")
    assert "owned" not in tab.title()
    said = ended(process)
    assert key not in said, "the address is printed once, and nothing logs it"


def test_a_page_outlives_its_server_and_asks_before_orders_and_its_copy_holds_nothing_private(
    desk: Desk, gate: Path, tab: Any, tmp_path: Path
) -> None:
    process, address = serving(desk, "--act")
    tab.goto(address)
    tab.wait_for_selector("#sessions tr")
    ended(process)
    tab.wait_for_selector("#notice:has-text('does not answer')")
    process, again = serving(desk, "--act")
    assert again == address
    holds(tab, "document.querySelector('#notice').textContent === ''")
    tab.goto(address.split("#")[0] + "cell/maze_good")
    tab.click("button[data-act=stop]")
    tab.click("#yes")
    tab.wait_for_selector("#question:has-text('Done')")
    until(lambda: desk.states["maze_good"] in {"partial", "cancelled"}, "the session has ended")
    tab.goto(address.split("#")[0] + "cell/maze_poor")
    tab.focus("button[data-act=stop]")
    desk.combo("stop", "--yes", "maze_poor", code=0)
    tab.wait_for_selector("button[data-act=retry]")
    assert tab.inner_text("button[data-act=retry]") == "Retry", "a button says what it does, also if it has the focus"
    gate.touch()
    until((desk.runs[-1] / "dispatch/done").exists, "all have ended")
    _its_copy_opens_from_disk_and_holds_nothing_private(desk, tab, address, tmp_path)
    ended(process)


def _its_copy_opens_from_disk_and_holds_nothing_private(desk: Desk, tab: Any, address: str, tmp_path: Path) -> None:
    desk.environment["SSH_CONNECTION"] = "203.0.113.9 5 203.0.113.10 22"
    done = subprocess.run(
        desk.command("view", "--bundle", tmp_path / "copy"),
        env=desk.environment, cwd=desk.home, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert "10 copied" in done.stdout, "each of the two that were stopped lacks one"
    texts = "".join(path.read_text() for path in (tmp_path / "copy").glob("*.html"))
    private = (
        address.split("#")[1],
        str(desk.home),
        getpass.getuser(),
        socket.gethostname(),
        "--run",
        "203.0.113",
        "argv",
    )
    assert [word for word in private if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", texts)] == []
    failures: list[str] = []
    tab.on("console", lambda message: failures.append(message.text) if message.type == "error" else None)
    tab.goto((tmp_path / "copy" / "index.html").as_uri() + "?q=state:failed")
    holds(tab, f"{SHOWN} === 1")
    tab.click("#sessions tbody tr:visible a")
    tab.wait_for_selector("h2:has-text('poor')")
    tab.goto((tmp_path / "copy" / "rollouts.html").as_uri() + "?show=failed&at=maze_poor:1")
    holds(tab, "[...document.querySelectorAll('video')].filter((one) => one.checkVisibility()).length === 2")
    tab.click("#play")
    holds(tab, "[...document.querySelectorAll('video')].some((one) => one.currentTime > 0)")
    assert not failures


def test_a_video_of_a_session_that_runs_on_another_host_comes_on_a_click(
    desk: Desk, ssh_place: Path, tab: Any, tmp_path: Path
) -> None:
    with fresh_user() as user, running_sshd(ssh_place / tmp_path.name, user) as server:
        desk.environment |= {"COMBORUN_SSH_CONFIG": str(server.config), "XDG_STATE_HOME": str(desk.home / "state")}
        a_clip(user.home / "clip.mp4")
        (user.home / "evaluate.py").write_text(EVALUATOR)
        grid = desk.grid(
            host="testbox", policies="[good]", environments="[maze]", episodes="6", results="{videos: '**/*.mp4'}",
            command="/usr/bin/python3 ~/evaluate.py {policy} {environment} {episodes} {output_dir} ~/gate ~/clip.mp4",
        )  # fmt: skip
        desk.combo("launch", grid, code=0)
        process, address = serving(desk, "--host", "testbox")
        tab.goto(address)
        tab.wait_for_selector("#sessions tr")
        tab.goto(address.split("#")[0] + "rollouts?at=maze_good:1")
        tab.click("[data-fetch] button")
        tab.wait_for_selector("video")
        holds(tab, "document.querySelector('video').readyState > 1")
        assert "running" in desk.combo("status", "--host", "testbox").stdout, "it runs all the while"
        ended(process)
        desk.combo("stop", "--yes", "--host", "testbox")


def test_the_runs_of_all_hosts_have_whole_names_and_numbers(tab: Any) -> None:
    plan = a_plan([a_session("p", "maze")])
    view = a_view(plan)
    history = look_at(an_answer(Seen("maze_p")), view=view)
    look = Look(1, view, history, classify(view, history))
    run = Run("a_longer_grid-20261129T221223Z-3943", "/x", {}, now={"episodes_done": 905, "episodes_planned": 1200})
    row = FleetRow("gamma", run, 60.0, "no answer yet")
    main = render("hosts.html.j2", Site(), look, "hosts", runs=[row], silent={}, busy=False)
    tab.set_viewport_size({"width": 1280, "height": 800})
    css = (HERE / "static" / "view.css").read_text()
    tab.set_content(f"<!doctype html><style>{css}</style><body><main>{main}</main>")
    cut = "[...document.querySelectorAll('#runs tbody > tr > *')].filter((one) => one.scrollWidth > one.clientWidth)"
    assert tab.evaluate(f"{cut}.map((one) => one.textContent)") == []
    assert "905/1200" in tab.inner_text("#runs")


def test_on_a_phone_the_name_of_the_run_and_the_button_of_a_long_alert_are_whole(tab: Any) -> None:
    plan = replace(a_plan([a_session("p", "maze")]), grid="walkers_on_every_ground")
    view = a_view(plan, "a-host-with-a-rather-long-name.example.org")
    history = look_at(an_answer(Seen("maze_p"), host=(a_hold("draining", "somebody needs the GPUs " * 4),)), view=view)
    look = Look(1, view, history, classify(view, history))
    main = Markup(render("run.html.j2", Site(acts=True), look, "run", **of_run(look), news=()))
    page = render("page.html.j2", Site(), look, "run", main=main, said={}, tag="")
    css = (HERE / "static" / "view.css").read_text()
    tab.set_viewport_size({"width": 390, "height": 800})
    tab.set_content(re.sub("<(link|script)[^>]*>", "", page).replace("<head>", f"<head><style>{css}</style>"))
    for part in ("h1", ".alert.whole button"):
        heights = tab.evaluate(f"[...document.querySelectorAll('{part}')].map((one) => one.clientHeight)")
        assert heights, part
        assert max(heights) < 2 * LINE, part


def test_on_a_phone_a_chart_shows_its_newest_end_and_keys_can_scroll_it(tab: Any) -> None:
    view = a_view(a_plan([a_session("p", "maze")]))
    history = look_at(an_answer(Seen("maze_p", gpus="0"), host=a_host((41000, 81559, 90))), view=view)
    look = Look(1, view, history, classify(view, history))
    css = (HERE / "static" / "view.css").read_text()
    tab.set_viewport_size({"width": 390, "height": 800})
    main = render("host.html.j2", Site(), look, "host", **of_hosts(look, {}, 0))
    tab.set_content(f"<!doctype html><style>{css}</style><body><main>{main}</main>")
    edges = tab.evaluate("[...document.querySelectorAll('.chart svg')].map((one) => one.getBoundingClientRect().right)")
    assert len(edges) == 2, "a GPU, and the slots"
    assert max(edges) <= 390
    assert not tab.locator(".chart:not([tabindex])").count()


@pytest.mark.parametrize(("mark", "pause"), [(" data-soon", 2000), ("", 10000)])
def test_what_is_awaited_is_asked_for_soon_also_after_the_end(tab: Any, mark: str, pause: int) -> None:
    script = (HERE / "static" / "view.js").read_text()
    said = '{"now": 1, "seen": 1, "link": "", "over": true}'
    page = f"<body data-base=/ data-said='{said}'><p id=notice></p><b id=ago></b><main id=main><p{mark}></p></main>"
    page = f"<!doctype html><script>pauses = []; setTimeout = (work, pause) => pauses.push(pause)</script>{page}"
    answer = {"status": 304, "headers": {"x-said": said}}
    whole = {"content_type": "text/html", "body": f"{page}<script>{script}</script>"}
    tab.route("**/*", lambda route: route.fulfill(**whole if route.request.is_navigation_request() else answer))
    tab.goto("http://127.0.0.1/")
    holds(tab, "pauses.length > 0")
    assert tab.evaluate("pauses") == [pause]


@pytest.mark.parametrize("count", [3, 12])
def test_long_names_are_whole_in_the_map_and_the_list(tab: Any, count: int) -> None:
    policies = [f"pi0_libero_finetuned_lr1e-4_checkpoint_step_{step}00000" for step in (1, 2)]
    places = [f"put_the_red_mug_on_the_{side}_plate" for side in ("left", "right", *range(count - 2))]
    view = a_view(a_plan([a_session(policy, place) for policy in policies for place in places]))
    history = look_at(an_answer(), view=view)
    look = Look(1, view, history, classify(view, history))
    main = render("run.html.j2", Site(), look, "run", **of_run(look), news=())
    css = (HERE / "static" / "view.css").read_text()
    tab.set_content(f"<!doctype html><style>{css}</style><body><main>{main}</main>")
    names = "[...document.querySelectorAll('.map th, .map th span, .list tbody th, .list tbody td, .named')]"
    for width in (1280, 390):
        tab.set_viewport_size({"width": width, "height": 800})
        cut = (
            f"{names}.filter((one) => one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1)"
        )
        assert tab.evaluate(f"{cut}.map((one) => one.textContent)") == []


def test_long_names_leave_the_list_its_last_column_and_a_printed_page_its_width(tab: Any) -> None:
    places = ["L" * 200, *(f"a_longer_place_{at}" for at in range(5))]
    plan = a_plan([a_session("p" * 60, place, 15) for place in places])
    view = a_view(plan)
    history = look_at(
        an_answer(*(Seen(one.name).ended("exited", "partial", records=12, successes=11) for one in plan.sessions)),
        view=view,
    )
    look = Look(1, view, history, classify(view, history))
    main = render("run.html.j2", Site(bundled=True), look, "run", **of_run(look), news=())
    assert "<span>a_<wbr>longer_<wbr>place_<wbr>0</span>" in main, "names break where their words end"
    css = (HERE / "static" / "view.css").read_text()
    filters = "".join(
        f"<label>{name} <select><option>{places[0]}</select></label>" for name in ("policy", "environment")
    )
    choice = f"<div class=bar-of><h2>Rollouts</h2><form class=filter>{filters}</form></div>"
    tab.set_content(f"<!doctype html><style>{css}</style><body><main>{main}{choice}</main>")
    ends = "[...document.querySelectorAll('.why, select')].map((one) => one.getBoundingClientRect().right)"
    for width in (1700, 1280):
        tab.set_viewport_size({"width": width, "height": 800})
        assert max(tab.evaluate(ends)) <= width
    tab.set_viewport_size({"width": 390, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    tab.set_viewport_size({"width": 1280, "height": 800})
    assert tab.evaluate("document.querySelector('.map thead').getBoundingClientRect().height") < 150
    tab.set_viewport_size({"width": A4, "height": 1000})
    tab.emulate_media(media="print")
    assert tab.evaluate("document.documentElement.scrollWidth") <= A4
    assert not tab.locator(".filter").first.is_visible()
