"""Which files a pattern finds."""

from __future__ import annotations

from comborun.rules import globs


def test_a_folder_of_output_that_leads_up_is_not_searched_and_another_one_is(tmp_path):
    """A program may put a link in place of its folder of output; one to `/` would take minutes."""
    (tmp_path / "run" / "attempt").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "r.jsonl").touch()
    (tmp_path / "run" / "near.jsonl").touch()
    out = tmp_path / "run" / "attempt" / "out"
    for target, found in (("/", []), (tmp_path, []), (tmp_path / "run", []), (tmp_path / "elsewhere", ["r.jsonl"])):
        out.symlink_to(target)
        assert globs.found(str(out), ["**/*.jsonl"]) == found
        out.unlink()
