"""A `Status` of `answers.status` as HTML, for notebooks. Pure."""

from __future__ import annotations

from html import escape
from typing import Any

from comborun.words.times import brief

_COLOURS = {"failed": "#b00020", "lost": "#b00020", "partial": "#a05a00", "stalled": "#a05a00", "succeeded": "#1b7f3b"}
_ORDER = ("failed", "lost", "partial", "stalled", "orphaned", "cancelled", "running", "starting", "queued")
_MOST = 100
"""rows that are shown; those that need somebody come first"""


def page_of(status: Any) -> str:
    done, planned = status.episodes_done, status.episodes_planned
    rows = sorted(status.sessions, key=_urgency)
    counts = ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in status.counts.items())
    more = f"<p>and {len(rows) - _MOST} more sessions</p>" if len(rows) > _MOST else ""
    return (
        '<div style="font-family: sans-serif">'
        f"<p><b>{escape(status.run)}</b> on {escape(status.host)}: {escape(counts)}</p>"
        f'<progress max="{max(1, planned)}" value="{done}" style="width: 100%"></progress>'
        f"<p>{done} of {planned} episodes{escape(_end(status))}</p>"
        f"{''.join(f'<p><b>{escape(line)}</b></p>' for line in _alerts(status))}"
        '<table><tr><th>state</th><th>policy</th><th>environment</th><th style="text-align: right">episodes</th>'
        '<th style="text-align: right">successes</th><th style="text-align: left">how, or its last line</th></tr>'
        f"{''.join(map(_row, rows[:_MOST]))}</table>{more}</div>"
    )


def _word(session: Any) -> str:
    return str(session.outcome or session.state)


def _urgency(session: Any) -> int:
    word = _word(session)
    return _ORDER.index(word) if word in _ORDER else len(_ORDER)


def _end(status: Any) -> str:
    if status.finished:
        held = status.hold and any(_word(one) == "queued" for one in status.sessions)
        after = f" after {brief(status.seconds)}" if status.seconds is not None else ""
        return f"; {'held' if held else 'finished'}{after}"
    if status.estimated_end is None or status.now is None:
        return ""
    return f"; ends in about {brief(max(0.0, status.estimated_end - status.now))}"


def _alerts(status: Any) -> list[str]:
    seen = "" if status.last_seen_seconds is None else f", last seen {brief(status.last_seen_seconds)} ago"
    trouble = "the run's folder is gone" if status.folder_gone else "the host does not answer"
    away = [] if status.reachable else [f"{trouble}{seen}"]
    held = [f"{status.hold.kind}: {status.hold.why}"] if status.hold else []
    return [*away, *held, *([status.hint] if status.hint else [])]


def _row(session: Any) -> str:
    word = _word(session)
    done = "-" if session.episodes_done is None else str(session.episodes_done)
    success = "-" if not session.episodes_recorded else f"{session.successes} of {session.episodes_recorded}"
    why = session.note or session.uncounted or session.last_line
    left, right = "text-align: left", "text-align: right"
    cells = (
        (f"color: {_COLOURS.get(word, 'inherit')}", word.replace("_", " ")),
        (left, session.policy),
        (left, session.environment),
        (right, f"{done}/{session.episodes_planned}" if session.episodes_planned else done),
        (right, success),
        (left, why),
    )
    return "<tr>" + "".join(f'<td style="{style}">{escape(text)}</td>' for style, text in cells) + "</tr>"
