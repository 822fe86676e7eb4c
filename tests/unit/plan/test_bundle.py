"""The files of a run directory, and the stream that publishes them."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from test_script import PLAN

from comborun.generate.bundle import RunFile, bundle
from comborun.host.__main__ import module_of
from comborun.host.verbs.publish import Staging
from comborun.remote import program
from comborun.remote.library import library_files, packed
from comborun.rules.results.formats import TABLE_OF_FORMATS

LIBRARY = library_files()


def files() -> dict[str, RunFile]:
    return {str(file.path): file for file in bundle(PLAN, "name: x\n", LIBRARY, {"commit": None})}


def test_the_manifest_names_every_expected_episode_before_the_start() -> None:
    manifest = json.loads(files()["run.json"].text)
    assert manifest["schema"] == 1
    assert [(entry["session"], entry["first"], entry["count"]) for entry in manifest["expected"]] == [
        ("stairs_flat", 0, 100),
        ("maze_pi0-5", 0, 0),
    ]


@settings(max_examples=25)
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=200))
def test_any_text_arrives_byte_for_byte(tmp_path_factory, text: str) -> None:
    root = tmp_path_factory.mktemp("root with 'quotes'")
    with Staging(str(root)) as staging:
        staging.fill([("run.json", text, False), ("a b/$x", text, True)])
        staging.to_disk()
        assert Path(staging.folder, "run.json").read_bytes() == text.encode()
        assert Path(staging.folder, "a b/$x").stat().st_mode & 0o777 == 0o755
    assert not list((root / ".incoming").iterdir())


def test_a_verb_travels_with_what_it_imports_and_nothing_else() -> None:
    names = json.loads(zlib.decompress(packed("publish"))).keys()
    assert names >= {
        "comborun.host.__main__",
        "comborun.host.verbs.publish",
        "comborun.host.system.files",
        "comborun.rules.records",
    }
    assert not names & {"comborun.host.verbs.fetch", "comborun.words.monitor", "comborun.words.sessions"}
    assert len(packed("publish")) < 47_100
    assert len(packed("logs")) < 38_400
    assert len(packed("facts")) < 80_000  # not what judges sessions: it travels first at each launch


SENT = ("facts", "publish", "amend", "reread", "sync", "fleet", "runs", "doctor", "boxes", "fetch", "logs", "left")
LOADS = """
import io, json, sys
loader = sys.argv[1].partition("from comborun")[0]
for module, size in json.loads(sys.argv[2]).items():
    sys.stdin = io.TextIOWrapper(io.BytesIO(b"%d\\n" % size + sys.__stdin__.buffer.read(size)))
    exec(loader)
    __import__(module)
    del sys.meta_path[0]
    for name in [name for name in sys.modules if name.startswith("comborun")]:
        del sys.modules[name]
"""


def test_each_verb_that_is_sent_finds_all_that_it_imports() -> None:
    sent = {module_of(verb): packed(verb) for verb in SENT}
    sizes = json.dumps({module: len(data) for module, data in sent.items()})
    words = [sys.executable, "-I", "-S", "-c", LOADS, program._LOADER, sizes]
    done = subprocess.run(words, input=b"".join(sent.values()), capture_output=True, check=False)
    assert not done.returncode, done.stderr.decode()


def test_a_verb_that_reads_results_travels_with_every_reader() -> None:
    readers = {one.reader.partition(".")[0] for one in TABLE_OF_FORMATS.values()}
    sent = json.loads(zlib.decompress(packed("reread")))
    assert len(readers) > 2
    assert {f"comborun.rules.results.{name}" for name in readers} <= set(sent)
