"""What an evaluation program found out: one record per episode, or k successes of n as one number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comborun.work import Combo

JsonValue = str | int | float | bool | None | list[Any] | dict[str, Any]


class Verdict(StrEnum):
    """What an episode says about the policy."""

    SUCCESS = "success"
    FAILURE = "failure"
    ERRORED = "errored"
    """it ran, but its program says that the result does not count: an exception, `success: null`"""


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """One episode of one combo, from one attempt of one session."""

    policy: str
    environment: str
    episode: int
    """index within the combo, fixed before launch; counts from 0"""
    verdict: Verdict
    seed: int | None = None
    metrics: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """finite numbers of the record; what was NaN or infinite is left out and counted as a defect"""
    extra: Mapping[str, JsonValue] = field(default_factory=lambda: MappingProxyType({}))
    """all other fields of the record, kept as they came"""
    session: str = ""
    attempt: int = 0
    source: str = ""
    """file:line, for people who look for it"""

    @property
    def combo(self) -> Combo:
        return self.policy, self.environment

    @property
    def key(self) -> tuple[str, str, int]:
        return (self.policy, self.environment, self.episode)

    @property
    def success(self) -> bool | None:
        """None for an errored episode."""
        return None if self.verdict is Verdict.ERRORED else self.verdict is Verdict.SUCCESS


@dataclass(frozen=True)
class Aggregate:
    """k successes of n episodes of a combo, where its program tells no more than that."""

    policy: str
    environment: str
    successes: int
    episodes: int
    metrics: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    session: str = ""
    attempt: int = 0
    source: str = ""

    @property
    def combo(self) -> Combo:
        return self.policy, self.environment
