"""The keys of a grid file, typed: what pydantic checks, what the JSON Schema says and what docs/grid.md lists."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from comborun.errors import UserError
from comborun.grid.about import AboutKeys, AttributeKeys, DefaultKeys
from comborun.grid.keys.around import (
    ContainerKeys,
    ContainerOr,
    Files,
    LauncherKeys,
    LauncherOr,
    WorkdirKeys,
    WorkdirOr,
)
from comborun.grid.keys.axis import AxisEntries, Match
from comborun.grid.keys.count import Count
from comborun.grid.keys.furnish import DisplayOr, Threads
from comborun.grid.keys.placement import ComponentKeys, PlacedKeys, Placing, Taking
from comborun.grid.keys.progress_values import CountsFrom, Flag, LogPattern, check_each
from comborun.grid.keys.resource import PinWord, ReserveKeys, ResourceKeys
from comborun.grid.keys.result_values import FormatWord, SourceWord
from comborun.grid.keys.server import HealthKeys, ReadyKeys, ServerKeys, Servers, WarmUpKeys
from comborun.grid.keys.shapes import Keys, OneOrMany, OrNone
from comborun.grid.keys.shard import Shards
from comborun.grid.keys.slurm import SlurmKeys
from comborun.grid.keys.stopping import StopKeys, StopOr
from comborun.grid.keys.survival import (
    ComboLimitKeys,
    EvidenceKeys,
    LimitKeys,
    NotifyKeys,
    NotifyOr,
    Retries,
    RetryKeys,
    Signatures,
)
from comborun.grid.keys.values import (
    AsWritten,
    Glob,
    Host,
    HostPython,
    Line,
    Name,
    NotNegative,
    Pattern,
    PollSeconds,
    Positive,
    Root,
    SecretSourceWord,
    Size,
    Text,
    UnitWord,
    VariableName,
    Workdir,
    refusal,
)
from comborun.rules.names import DEFAULT_ROOT
from comborun.text import GIB

DEFAULT_POLL = 60.0
DEFAULT_SHIPPED = GIB


class ResultKeys(Keys):
    format: FormatWord = Field(
        default="", description="how the records are written; without it that is told by what stands in each file"
    )
    source: SourceWord = Field(
        default="output", alias="from", description="log, where the program only prints its results; else output"
    )
    files: Annotated[tuple[Glob, ...], OneOrMany()] = Field(
        default=("**/*.jsonl",), description="patterns of the record files below {output_dir}, one JSON object a line"
    )
    success: Line = Field(default="success", description="the field that says whether an episode succeeded")
    episode: Line = Field(default="episode", description="the field that holds the episode's index")
    metrics: Annotated[tuple[Line, ...], OneOrMany()] = Field(
        default=(), description="the fields to report, in this order; without it every numeric field"
    )
    videos: Annotated[tuple[Glob, ...], OneOrMany()] = Field(
        default=(), description="patterns of videos below {output_dir}, which the report names beside their episodes"
    )


class ProgressKeys(Keys):
    pattern: LogPattern | None = Field(
        default=None, description="regular expression (Python) with a group for what is done, perhaps one for the total"
    )
    counts_from: CountsFrom | None = Field(
        default=None, description="the number names the episode that begins, and the first one is called so"
    )
    each: Count | None = Field(
        default=None, description="episodes (or steps) that the total stands for, where the bar then starts again"
    )
    silent: Flag = Field(default=False, description="whether the program prints nothing for long stretches")

    @model_validator(mode="after")
    def _needs_a_pattern(self) -> Self:
        if self.counts_from is not None and "pattern" not in self.model_fields_set:
            raise refusal(UserError("`counts_from` without a `pattern`", "which number is it about?"))
        if self.each is not None:
            check_each(self.pattern, self.counts_from)
        return self


class SyncKeys(Keys):
    """Files of this machine that are put on the host before the first session starts."""

    model_config = ConfigDict(json_schema_extra={"required": ["from", "to"]})

    source: Workdir | None = Field(
        default=None, alias="from", description="a folder or a file of this machine; relative to the grid file"
    )
    to: Root | None = Field(default=None, description="what it becomes on the host")
    exclude: Annotated[tuple[Pattern, ...], OneOrMany()] = Field(
        default=(), description="patterns of what stays here, besides .git, __pycache__, .venv, node_modules, *.pyc"
    )
    max_size: Size = Field(default=DEFAULT_SHIPPED, description="refuse to ship more than this, in all")


class SettingKeys(Keys):
    """What may differ from combo to combo."""

    episodes: Positive | None = Field(default=None, description="episodes (or steps) of every combo")
    first_episode: NotNegative = Field(default=0, description="index of the first episode")
    seed: NotNegative | None = Field(default=None, description="fills {seed}")
    block: Positive | None = Field(
        default=None, description="episodes of one session: a combo is cut into so many; else it is one session"
    )
    shards: Shards | None = Field(
        default=None, description="sessions that a combo is cut into, each with a range; auto: as many as pay"
    )
    unit: UnitWord = Field(default="episode", description="what is counted: episode, or step for training")
    command: Text | None = Field(default=None, description="the program and its arguments; no shell reads them")
    setup: Text = Field(default="", description="bash that runs before the command, in the same shell")
    workdir: WorkdirOr = Field(
        default_factory=WorkdirKeys, description="folder in which setup and command run, or `{link_from: FOLDER}`"
    )
    variables: dict[VariableName, AsWritten] = Field(default={}, description="environment variables")
    files: Files = Field(default={}, description="files that are written for each attempt; {file.NAME} is their path")
    launcher: LauncherOr = Field(default=None, description="torchrun: the command is started once on each GPU")
    container: ContainerOr = Field(default=None, description="an image in which setup and command run")
    resources: ResourceKeys = Field(default_factory=ResourceKeys, description="what one session needs")
    placement: Placing = Field(
        default={}, description="the GPUs of each component of the program, as RLinf writes it; fills {placement}"
    )
    components: Taking = Field(default={}, description="what each component takes, for `placement` to be checked by")
    pin: PinWord = Field(default="cvd", description="how a session finds its GPUs: cvd, device-arg, both or none")
    display: DisplayOr = Field(default=None, description="the X server of a session: xvfb, one that is there, or none")
    threads: Threads | None = Field(
        default=None, description="threads that a session's libraries start, at most; else as many as its cores"
    )
    results: Annotated[ResultKeys | None, OrNone()] = Field(
        default_factory=ResultKeys, description="where the records are; `none` where the program leaves none"
    )
    progress: Annotated[ProgressKeys | None, OrNone()] = Field(
        default_factory=ProgressKeys, description="what the log tells before the records do; `none` where nothing"
    )
    evidence: EvidenceKeys = Field(default_factory=EvidenceKeys, description="what shows that the work is done")
    failures: Signatures = Field(
        default={}, description="regular expressions (Python) of log lines, by the class of failures that they show"
    )


class Override(SettingKeys):
    """Settings for the combos that `when` matches."""

    model_config = ConfigDict(json_schema_extra={"required": ["when"], "minProperties": 2})

    when: Match = Field(default_factory=Match, description="the combos that it is for")
    limits: ComboLimitKeys = Field(default_factory=ComboLimitKeys, description="how long a session may take")


class GridFile(SettingKeys):
    """Policies, the environments that they are evaluated in, and how that is done."""

    # Every key has a default, so that one mistake never hides another: the checks ask for what must be there.
    model_config = ConfigDict(title="comborun grid", json_schema_extra={"required": ["policies", "environments"]})

    name: Name | None = Field(default=None, description="name of the grid and of its runs; else the file's")
    preset: Line | None = Field(
        default=None, description="what is known of the program: a preset's name, or the path of one"
    )
    host: Host | None = Field(default=None, description="ssh host on which the sessions run; else this machine")
    root: Root = Field(default=DEFAULT_ROOT, description="folder on the host that holds the runs")
    host_python: HostPython | None = Field(
        default=None, description="the Python 3.8 or newer that comborun itself uses on the host; else one is found"
    )
    policies: AxisEntries = Field(default=(), description="the policies: a list, or a map name -> attributes")
    environments: AxisEntries = Field(default=(), description="the environments: a list, or a map name -> attributes")
    include: tuple[Match, ...] = Field(default=(), description="combos that exclude took out and that come back")
    exclude: tuple[Match, ...] = Field(default=(), description="combos that are left out")
    overrides: tuple[Override, ...] = Field(default=(), description="settings for some combos; the last match wins")
    stop_early: StopOr | None = Field(
        default=None, description="comparisons that end as soon as they are decided, fixed before the first episode"
    )
    use_gpus: Annotated[tuple[NotNegative, ...], OneOrMany()] | None = Field(
        default=None, description="indexes of the GPUs that sessions may be granted; else all of the host"
    )
    servers: Servers = Field(default={}, description="model servers that sessions ask: a map name -> keys")
    reserve: ReserveKeys = Field(default_factory=ReserveKeys, description="what sessions leave free for others")
    limits: LimitKeys = Field(default_factory=LimitKeys, description="how much runs at once, how long and how often")
    retry: Retries = Field(
        default={}, description="by class of failures, how often a session is started again; `none` for never"
    )
    after: Text | None = Field(default=None, description="a command that runs once on the host when all has ended")
    notify: NotifyOr | None = Field(default=None, description="a command of yours that is told how the run fares")
    sync: tuple[SyncKeys, ...] = Field(default=(), description="files of yours that are put on the host first")
    replaces: Annotated[tuple[Line, ...], OneOrMany()] = Field(
        default=(), description="tmux and screen sessions of yours that are ended before the first start"
    )
    secrets: dict[VariableName, SecretSourceWord] = Field(
        default={}, description="environment variables whose values are taken from the host or the laptop at launch"
    )
    slurm: SlurmKeys = Field(default_factory=SlurmKeys, description="how its jobs are asked for with `--slurm`")
    poll: PollSeconds = Field(default=DEFAULT_POLL, description="time between two looks of the monitor")


Layer = GridFile | Override


def keys_of(section: type[Keys]) -> tuple[str, ...]:
    """The keys of a map, as they stand in the file."""
    return tuple(field.alias or name for name, field in section.model_fields.items())


ANY = "*"
"""stands for a key that the user names"""
AXES = ("policies", "environments")
SECTIONS: dict[tuple[str, ...], type[Keys]] = {
    (): GridFile,
    ("include",): Match,
    ("exclude",): Match,
    ("overrides",): Override,
    ("overrides", "when"): Match,
    ("overrides", "resources"): ResourceKeys,
    ("overrides", "workdir"): WorkdirKeys,
    ("overrides", "launcher"): LauncherKeys,
    ("overrides", "container"): ContainerKeys,
    ("overrides", "placement", ANY): PlacedKeys,
    ("overrides", "components", ANY): ComponentKeys,
    ("overrides", "results"): ResultKeys,
    ("overrides", "progress"): ProgressKeys,
    ("overrides", "evidence"): EvidenceKeys,
    ("overrides", "limits"): ComboLimitKeys,
    ("resources",): ResourceKeys,
    ("workdir",): WorkdirKeys,
    ("launcher",): LauncherKeys,
    ("container",): ContainerKeys,
    ("reserve",): ReserveKeys,
    ("placement", ANY): PlacedKeys,
    ("components", ANY): ComponentKeys,
    ("results",): ResultKeys,
    ("progress",): ProgressKeys,
    ("evidence",): EvidenceKeys,
    ("limits",): LimitKeys,
    ("retry", ANY): RetryKeys,
    ("notify",): NotifyKeys,
    ("stop_early",): StopKeys,
    ("sync",): SyncKeys,
    ("slurm",): SlurmKeys,
    ("servers", ANY): ServerKeys,
    ("servers", ANY, "resources"): ResourceKeys,
    ("servers", ANY, "ready"): ReadyKeys,
    ("servers", ANY, "warm_up"): WarmUpKeys,
    ("servers", ANY, "health"): HealthKeys,
    ("about",): AboutKeys,
    ("about", "attributes"): AttributeKeys,
    ("about", "defaults"): DefaultKeys,
}
"""every map of a grid file or a preset whose keys are fixed"""
