"""The episodes of a run as rows, for Python and for tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from comborun.api.reports import collected

if TYPE_CHECKING:
    import pandas
    import polars  # pyright: ignore[reportMissingImports]

    from comborun.api.named import Target
    from comborun.model.attempt import EpisodeRecord, JsonValue


@dataclass(frozen=True)
class Episode:
    """An episode that counts: the one that the report uses."""

    policy: str
    environment: str
    episode: int
    """index within the combo, from 0"""
    verdict: str
    """success, failure, errored or measured"""
    success: bool | None
    seed: int | float | str | None
    session: str
    attempt: int
    source: str
    """file:line, below the run's folder"""
    metrics: Mapping[str, float]
    fields: Mapping[str, JsonValue]
    """the other fields of its record: a program wrote them"""
    video: Path | None
    """on this machine; None if it has none here"""
    video_on_host: str | None

    def row(self) -> dict[str, Any]:
        """One flat row: a metric or a field with the name of another column is `record.NAME`."""
        own = {name: getattr(self, name) for name in _COLUMNS}
        own |= {"video": None if self.video is None else str(self.video), "video_on_host": self.video_on_host}
        found = {**self.metrics, **{name: value for name, value in self.fields.items() if name != "video"}}
        return own | {f"record.{name}" if name in own else name: value for name, value in found.items()}


_COLUMNS = ("policy", "environment", "episode", "verdict", "success", "seed", "session", "attempt", "source")


class Episodes(Sequence[Episode]):
    """The episodes of a run, in the order of the plan."""

    def __init__(self, episodes: Sequence[Episode]) -> None:
        self._episodes = tuple(episodes)

    @overload
    def __getitem__(self, index: int) -> Episode: ...
    @overload
    def __getitem__(self, index: slice) -> Episodes: ...
    def __getitem__(self, index: int | slice) -> Episode | Episodes:
        return Episodes(self._episodes[index]) if isinstance(index, slice) else self._episodes[index]

    def __len__(self) -> int:
        return len(self._episodes)

    def __repr__(self) -> str:
        return f"<{len(self)} episodes; to_pandas(), to_polars() or rows() make a table>"

    def rows(self) -> list[dict[str, Any]]:
        return [one.row() for one in self]

    def to_pandas(self) -> pandas.DataFrame:
        import pandas

        return pandas.DataFrame(self.rows(), columns=None if self else [*_COLUMNS, "video", "video_on_host"])

    def to_polars(self) -> polars.DataFrame:
        import polars  # pyright: ignore[reportMissingImports]

        return polars.DataFrame(self.rows(), infer_schema_length=None, strict=False)


def episodes_of(target: Target) -> Episodes:
    """The episodes of a run that count; copies new records to this machine."""
    from comborun.reporter.comparing.sides import results_of

    found, source = collected(target)
    merged = results_of(found).merged.values()
    return Episodes(tuple(_episodes((one for combo in merged for one in combo.accepted), target, source)))


def _episodes(records: Iterator[EpisodeRecord], target: Target, source: Path) -> Iterator[Episode]:
    for one in records:
        fields = one.extra
        named = fields.get("video")
        video = source / named if isinstance(named, str) else None
        yield Episode(
            policy=one.policy,
            environment=one.environment,
            episode=one.episode,
            verdict=str(one.verdict.value),
            success=one.success,
            seed=one.seed,
            session=one.session,
            attempt=one.attempt,
            source=one.source,
            metrics=one.metrics,
            fields=fields,
            video=video if video and video.is_file() else None,
            video_on_host=f"{target.directory}/{named}" if isinstance(named, str) else None,
        )
