"""The report's page in a browser: its script, what it is without it, and what it forbids."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import zlib
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from comborun.reporter.report import report_folder

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not here")

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title = 'owned'</script>"
NAMES = [f"policy{number}" for number in range(1, 13)] + [HOSTILE]
ROWS = "[...document.querySelectorAll('#combos tbody')].filter((body) => body.checkVisibility())"
SHOWN = f"{ROWS}.map((body) => body.querySelector('th').innerText + ' ' + body.querySelector('td').innerText)"


class Browser:
    """One tab of a headless Chromium, spoken to over pipes (Chrome DevTools Protocol)."""

    def __init__(self, home: Path) -> None:
        theirs, self._to = os.pipe()
        self._from, given = os.pipe()
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={home}")
        start = f'exec "$@" 3<&{theirs} 4>&{given}'
        self._process = subprocess.Popen(
            ["bash", "-c", start, "bash", CHROMIUM, *options],
            pass_fds=(theirs, given),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(given)
        self._answers = os.fdopen(self._from, "rb", buffering=0)
        self._read, self._numbers, self._session = b"", itertools.count(1), ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._answers.close()
        os.close(self._to)

    def call(self, method: str, **given: object) -> dict[str, Any]:
        number = next(self._numbers)
        question = {"id": number, "method": method, "params": given}
        if self._session:
            question["sessionId"] = self._session
        os.write(self._to, json.dumps(question).encode() + b"\0")
        while (answer := self._next()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            came = os.read(self._from, 1 << 20)
            assert came, "Chromium has ended"
            self._read += came
        answer, self._read = self._read.split(b"\0", 1)
        return json.loads(answer)

    def open(self, page: Path, *, script: bool = True) -> None:
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        while all(event.get("method") != "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def value(self, expression: str) -> Any:
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, text=text)

    def tab_to(self, name: str) -> None:
        """With the keyboard to what has this text or label."""
        reached = []
        while name not in reached:
            assert len(reached) < 60, reached
            self.press("Tab", 9)
            reached.append(self.value("document.activeElement.ariaLabel || document.activeElement.innerText"))

    def type(self, words: str) -> None:
        """In place of what is there."""
        self.value("document.activeElement.select()")
        self.call("Input.insertText", text=words)

    @property
    def complaints(self) -> list[str]:
        """What the browser refused or could not run."""
        entries = (event for event in self.events if event.get("method") == "Log.entryAdded")
        return [event["params"]["entry"]["text"] for event in entries]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("chromium"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of 26 combos, so that they are folded and can be filtered. Those of policy 5 have an errored episode each."""
    folder = tmp_path_factory.mktemp("results")
    rows = (
        {"policy": name, "environment": place, "episode": episode,
         "success": None if (name, episode) == ("policy5", 9) else episode < number % 10}
        for number, name in enumerate(NAMES) for place in ("grass", "stairs") for episode in range(10)
    )  # fmt: skip
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report_folder(folder, folder / "report")
    return folder / "report" / "report.html"


def test_a_table_is_sorted_by_keyboard_and_what_belongs_to_a_row_goes_with_it(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.value(SHOWN) == []
    browser.value("document.querySelector('nav [href=\"#combos\"]').focus()")
    browser.press("Enter", 13, "\r")
    browser.tab_to("rate")  # of the combos, which the link has unfolded
    rates = f"{ROWS}.map((body) => parseFloat(body.querySelector('[data-label=rate]').innerText))"
    whole = browser.value(SHOWN)
    assert len(whole) == 26
    for expected in (sorted, lambda found: sorted(found, reverse=True)):
        browser.press("Enter", 13, "\r")
        assert browser.value(rates) == expected(browser.value(rates))
    assert browser.value("document.activeElement.closest('th').ariaSort") == "descending"
    assert sorted(browser.value(SHOWN)) == sorted(whole)
    below = browser.value(f"{ROWS}.filter((body) => body.querySelector('.below')).map((body) => body.innerText)")
    assert [words.split()[0] for words in below] == ["policy5", "policy5"]
    browser.value("document.querySelector('#combos thead button').click()")
    assert [words for words in browser.value(SHOWN) if "policy" in words][:6] == [
        *("policy1 grass", "policy1 stairs", "policy2 grass", "policy2 stairs", "policy3 grass", "policy3 stairs")
    ]


def test_a_table_is_filtered_by_all_words_of_a_field(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.value("document.querySelector('#combos details').open = true")
    browser.value("document.querySelector('#combos summary').focus()")
    browser.tab_to("Filter rows: Combos")
    browser.type("STAIRS policy1")
    assert browser.value(SHOWN) == ["policy1 stairs", "policy10 stairs", "policy11 stairs", "policy12 stairs"]
    browser.type("")
    assert len(browser.value(SHOWN)) == 26


def test_the_page_is_whole_without_its_script(browser: Browser, page: Path) -> None:
    browser.open(page, script=False)
    assert browser.value("document.querySelectorAll('button, input').length") == 0
    browser.value("document.querySelector('#combos summary').focus()")
    browser.press("Enter", 13, "\r")
    assert len(browser.value(SHOWN)) == 26


def test_the_page_runs_its_own_script_and_nothing_else(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.value("document.title") == f"{page.parents[1].name}: success rates"
    assert browser.complaints == []
    spoiled = page.with_name("spoiled.html")
    added = (
        "<script>document.title = 'owned'</script><script src=a.js></script><img src=a.png><a href=x onclick=a()>a</a>"
    )
    spoiled.write_text(page.read_text().replace("<main>", f"<main>{added}"))
    browser.open(spoiled)
    assert browser.value("document.title") == f"{page.parents[1].name}: success rates"
    browser.value("document.querySelector('main a').click()")
    assert len([words for words in browser.complaints if "Content Security Policy" in words]) >= 4


def test_names_of_thousands_of_characters_and_lists_of_environments_make_no_row_tall(
    browser: Browser, tmp_path: Path
) -> None:
    rows = (
        {"policy": f"{policy}{'policy ' * 300}", "environment": f"{number}. {'environment ' * 8}", "episode": episode,
         "success": None if episode == 3 else episode < policy}
        for policy in range(31) for number in range(2) for episode in range(4)
    )  # fmt: skip
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report_folder(tmp_path, tmp_path / "report")
    browser.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    browser.open(tmp_path / "report" / "report.html")
    assert max(browser.value("[...document.querySelectorAll('#means tr')].map((row) => row.offsetHeight)")) < 150
    browser.call("Emulation.clearDeviceMetricsOverride")
    printed = b64decode(browser.call("Page.printToPDF")["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) < 45  # all environments are unfolded
    browser.value("document.querySelector('#names details').open = true")
    assert max(browser.value("[...document.querySelectorAll('#names dd')].map((one) => one.offsetHeight)")) < 300


def pages_of(pdf: bytes) -> list[int]:
    """By printed page, the number of its signs."""
    objects = {int(number): body for number, body in re.findall(rb"(?s)(\d+) 0 obj(.*?)endobj", pdf)}
    shown = [body for body in objects.values() if re.search(rb"/Type\s*/Page\b", body)]
    streams = (objects[int(re.search(rb"/Contents (\d+) 0 R", body)[1])] for body in shown)  # type: ignore[index]
    drawn = (zlib.decompress(re.search(rb"(?s)stream\r?\n(.*)\r?\nendstream", one)[1]) for one in streams)  # type: ignore[index]
    return [sum(len(text) // 4 for text in re.findall(rb"<([0-9A-F]+)>", one)) for one in drawn]


def headings_of(pdf: bytes) -> list[float]:
    """How far each heading lies above the end of its page, in points."""
    places = re.findall(rb"(?s)/Title .{1,120}?/Dest \[\d+ 0 R /XYZ [\d.]+ ([\d.]+) 0\]", pdf)
    return [float(height) for height in places]


@pytest.mark.parametrize(("policies", "places", "most"), [(1, 1, 3), (3, 1, 6), (2, 4, 7), (8, 3, 20)])
def test_on_paper_the_page_is_short_and_no_heading_stands_alone(
    browser: Browser, tmp_path: Path, policies: int, places: int, most: int
) -> None:
    rows = (
        {"policy": f"policy{policy}", "environment": f"place{place}", "episode": episode, "seed": episode,
         "success": (episode * 7 + place) % 40 < 4 * policy + 6, "steps": 50 + (episode * 13) % 80,
         "failure": ("fell", "stuck")[episode % 2]}
        for policy in range(policies) for place in range(places) for episode in range(40)
    )  # fmt: skip
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report_folder(tmp_path, tmp_path / "report")
    browser.open(tmp_path / "report" / "report.html")
    paper = {"paperWidth": 8.27, "paperHeight": 11.69, "generateTaggedPDF": True, "generateDocumentOutline": True}
    printed = b64decode(browser.call("Page.printToPDF", **paper)["data"])
    pages, headings = pages_of(printed), headings_of(printed)
    assert len(pages) <= most
    assert min(pages) > 150  # a page with a heading alone has some 20
    assert len(headings) > 5
    assert min(headings) > 72, "a heading is the last line of its page"


def test_on_paper_no_table_is_cut(browser: Browser, tmp_path: Path) -> None:
    rows = (
        {"policy": f"diffusion_policy_{policy}", "environment": "stairs", "episode": episode, "seed": episode,
         "success": episode % 5 < 3, **{f"metric_{name}": 100 / 3 + name + episode * policy / 7 for name in range(7)}}
        for policy in range(4) for episode in range(6)
    )  # fmt: skip
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report_folder(tmp_path, tmp_path / "report")
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.call("Emulation.setDeviceMetricsOverride", width=688, height=1016, deviceScaleFactor=1, mobile=False)
    browser.open(tmp_path / "report" / "report.html")
    browser.value("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    widest = browser.value("Math.max(...[...document.querySelectorAll('table')].map((one) => one.offsetWidth))")
    assert 600 < widest < 688 * 4 / 3  # which Chromium makes smaller, and does not cut


@pytest.fixture(scope="module")
def long_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With tables that take several sheets of paper, and are wider than a phone."""
    folder = tmp_path_factory.mktemp("long")
    rows = (
        {"policy": f"policy{policy}", "environment": f"place{place}", "episode": episode, "seed": episode,
         "success": (episode * 7 + place) % 10 < policy + 2}
        for policy in range(9) for place in range(8) for episode in range(10)
    )  # fmt: skip
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report_folder(folder, folder / "report")
    return folder / "report" / "report.html"


def test_on_paper_each_page_repeats_the_head_of_a_table(browser: Browser, long_page: Path) -> None:
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.call("Emulation.clearDeviceMetricsOverride")
    browser.open(long_page)
    browser.value("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    browser.value("document.body.replaceChildren(document.querySelector('#combos table'))")
    with_head = pages_of(b64decode(browser.call("Page.printToPDF")["data"]))
    browser.value("document.querySelector('thead').style.visibility = 'hidden'")
    without = pages_of(b64decode(browser.call("Page.printToPDF")["data"]))
    assert len(with_head) > 1
    assert len({shown - hidden for shown, hidden in zip(with_head, without, strict=True)}) == 1
    assert with_head[0] - without[0] > 50


def test_on_a_phone_the_first_column_stays_and_the_ranking_can_be_read(browser: Browser, long_page: Path) -> None:
    browser.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    browser.open(long_page)
    browser.value("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    browser.value("wide = [...document.querySelectorAll('.scroll')].find((one) => one.scrollWidth > 500)")
    places = "[...wide.querySelectorAll('tr')].slice(0, 3).map((row) => row.children[0].getBoundingClientRect().left)"
    before = browser.value(places)
    assert browser.value("(wide.scrollLeft = 150, wide.scrollLeft)") == 150
    assert browser.value(places) == before
    drawn = "[...document.querySelectorAll('#ranking text')].map((one) => one.getBoundingClientRect().height)"
    heights = [height for height in browser.value(drawn) if height]
    assert len(heights) > 9
    assert min(heights) >= 11
    assert browser.value("document.documentElement.scrollWidth") == 390
    browser.call("Emulation.clearDeviceMetricsOverride")
