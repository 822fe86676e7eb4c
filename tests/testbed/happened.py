"""What happened in a run, from its events."""

from __future__ import annotations

from pathlib import Path

from comborun.rules.events import Event, parse


def events(run: Path, *kinds: str) -> list[Event]:
    """The events of these kinds, or all."""
    file = run / "dispatch/events.jsonl"
    found = parse(file.read_text()) if file.exists() else []
    return [event for event in found if not kinds or event.kind in kinds]


def granted(run: Path) -> list[str]:
    """The sessions that got attempts, in that order."""
    return [event.session for event in events(run, "granted")]


def words(event: Event) -> str:
    """`KIND SESSION ATTEMPT FIELD=VALUE ...`, to look for and to show."""
    whose = (event.kind, event.session, str(event.attempt or ""))
    fields = (f"{key}={','.join(map(str, one)) if isinstance(one, list) else one}" for key, one in event.fields.items())
    return " ".join(word for word in (*whose, *fields) if word)
