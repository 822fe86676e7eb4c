"""Finds results of an attempt that the grid does not read, and proposes the line for `results:` that would."""

from __future__ import annotations

import os
from itertools import islice

from comborun.host.files import size
from comborun.host.results import Folder
from comborun.rules import episodes, globs, tally
from comborun.rules.fields import Identity
from comborun.rules.proposals import advice, propose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.host.judging import Rules
    from comborun.rules.names import AttemptLayout
    from comborun.rules.tally import Files

_FILES_MOST = 200
"""that are looked at"""
_LOG_MOST = 4 << 20
_NUMBER = r"(?i)\b(?:episode|trial|rollout)\D{0,4}(?P<episode>\d{1,9})\b"
_SCORE = r".*?\b(?:return|reward|score)\D{0,6}?(?P<score>[-+]?\d+(?:\.\d+)?)"
_WORD = r".*?\b(?P<verdict>(?:not? (?:an? )?|un)?(?:success(?:ful)?|succeeded|solved|passed|fail(?:ed|ure)?|timeout))\b"
LOG_PATTERNS = (
    _NUMBER + r".*?\bsuccess\w*\W{1,4}(?P<verdict>true|false|0|1)\b",
    _NUMBER + _SCORE + _WORD,
    _NUMBER + _WORD,
    r"(?i)\bsuccess\w*\W{1,4}(?P<verdict>true|false|0|1)\b",
    _NUMBER + _SCORE,
)
"""lines as programs print them for each episode"""


def unread(at: AttemptLayout, rules: Rules) -> str:
    """A sentence, empty where nothing that was written is like a result. Files come first, then the log."""
    taken = set(globs.found(at.output, rules.files))
    written = (path for path in globs.matching(at.output, "**") if path not in taken and size(f"{at.output}/{path}"))
    others = sorted(islice(written, _FILES_MOST))
    own = f"the pattern takes {', '.join(rules.files)}"
    refused = ""
    for suffix in dict.fromkeys(map(episodes.suffix_of, others)):
        pattern = f"**/*{suffix}"
        files = Folder(at.output, [pattern], rules.identity, rules.format).read()
        if sentence := _counts(files, rules.identity, rules, {"files": f'"{pattern}"'}, own):
            return sentence
        if suffix in (*episodes.LINES, *episodes.DOCUMENTS):
            refused = refused or next((f"{path}: {one}; {own}" for path, one in files.refused), "")
    return _log(at, rules) or refused or ("" if others or taken else "it wrote no file below {output_dir}")


def _log(at: AttemptLayout, rules: Rules) -> str:
    """The log, by the first pattern that finds an episode in it."""
    if rules.source == "log" or not 0 < size(at.log) <= _LOG_MOST:
        return ""
    path = os.path.relpath(at.log, at.output)
    for pattern in LOG_PATTERNS:
        identity = Identity(rules.policy, rules.environment, pattern=pattern)
        files = Folder(at.output, [], identity, "", path).read()
        if sentence := _counts(files, identity, rules, {"from": "log", "pattern": f"'{pattern}'"}, "it is not read"):
            return sentence.replace(path, "the log", 1)
    return ""


def _counts(files: Files, identity: Identity, rules: Rules, keys: dict[str, str], but: str) -> str:
    """That these files hold episodes, if they do by `keys` and what is proposed besides."""
    counts = tally.tally(files, identity, rules.span, over=True)
    samples = tally.samples_of(files)
    seen = {index for _, rows in files.rows for index in (*rows.episodes, *rows.numbered)}
    more = propose(samples, identity, rules.span, seen)
    if not (more or counts.verdicts):
        return ""
    path, rows = next((path, rows) for path, rows in files.rows if rows.rows)
    noun = "episode" if rows.rows == 1 else "episodes"
    return f"{path}: {rows.rows} {noun}, but {but}: {advice({**keys, **more}, samples)}"
