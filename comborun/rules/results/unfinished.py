"""Whether a document says itself that its evaluation has not ended. Pure."""

from __future__ import annotations

from comborun.rules.results.episodes import plain
from comborun.rules.results.fields import MISSING, TEXT_MOST, TORN, RefusedError, integer
from comborun.rules.results.stated_counts import BAD, EVERY, GOOD, kind_of
from comborun.rules.vocabulary import word_set

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from comborun.rules.results.fields import Identity
    from comborun.rules.results.rates import Count

_ENDED = word_set("finished complete completed done ended is_finished is_complete is_done all_done")
_BROKEN = word_set(
    "interrupted aborted partial incomplete unfinished running in_progress is_partial truncated cancelled"
)
_STATES = word_set("status state run_status")
_OPEN = _BROKEN | word_set("started pending canceled paused killed ongoing evaluating working")
_PLANNED = word_set("planned expected target requested wanted scheduled")
_SO_FAR = word_set(
    "completed finished done evaluated episodes_completed completed_episodes episodes_done num_completed"
)
_INNER_MOST = 50


def refuse_unfinished(value: Any, identity: Identity, rows: int, counted: Count | None = None) -> None:
    """Raise RefusedError for a document that says that it is not whole, and holds fewer episodes than it declares.

    A program may never update such a flag: then its list is as long as declared. A mere count of all episodes may be
    that of those planned, so it must be confirmed by failures or by those completed.
    """
    if not isinstance(value, dict):
        return
    if counted is None and rows == 1 and not identity.success.word and identity.success.find(value) is not MISSING:
        return  # one episode, whose `done` is its own
    numbers = dict(_numbers(value))
    done = max((at for key, at in numbers.items() if key in _SO_FAR), default=None)
    total = max((at for key, at in numbers.items() if _declares(key)), default=0)
    said = _flag(value)
    if counted is not None:
        rows = counted.episodes
        known = {at for key, at in numbers.items() if kind_of(key) == GOOD}
        failed = {at for key, at in numbers.items() if kind_of(key) == BAD}
        if done is not None and done < rows and done >= counted.successes and done not in known:
            said, total, rows = said or f"completed: {done}", max(total, rows), done
        elif said and rows - counted.successes not in failed and done != rows:
            raise RefusedError(TORN, "count_not_finished", said=said, successes=counted.successes, of=rows)
    if said and rows < total:
        raise RefusedError(TORN, "document_not_finished", said=said, episodes=rows, total=total)


def _numbers(value: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """The whole numbers of a document and of the objects right in it."""
    for one in (value, *_inner(value)):
        for key, entry in one.items():
            if not isinstance(entry, (bool, dict, list)) and (at := integer(entry)) is not None:
                yield plain(key), at


def _inner(value: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in list(value.values())[:_INNER_MOST] if isinstance(one, dict)]


def _declares(key: str) -> bool:
    words = {*key.split("_")}
    return kind_of(key) == EVERY or bool(
        words & _PLANNED and (words <= _PLANNED or kind_of("_".join(words - _PLANNED)))
    )


def _flag(value: dict[str, Any]) -> str:
    """What it says of itself: `interrupted: True`, `finished: False`, `status: running`; empty: nothing of this."""
    for one in (value, *(inner for key, inner in value.items() if isinstance(inner, dict) and plain(key) in _ABOUT)):
        for key, entry in one.items():
            name = plain(key)
            word = plain(entry) if isinstance(entry, str) else ""
            ends = (name in _ENDED and entry is False) or (name in _BROKEN and entry is True)
            if ends or (name in _STATES and word in _OPEN):
                return f"{key}: {entry}"[:TEXT_MOST]
    return ""


_ABOUT = word_set("meta metadata info run summary header progress")
