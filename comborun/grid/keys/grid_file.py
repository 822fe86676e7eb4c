"""The keys of a grid file and of a preset: what pydantic checks, the JSON Schema says and docs/grid.md lists."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import ConfigDict
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from comborun.grid.keys.axes import Axes, ComboMatch, Shards, StopOr
from comborun.grid.keys.launch import Hosts, SlurmKeys, SyncKeys
from comborun.grid.keys.limits_retry import ComboLimitKeys, EvidenceKeys, LimitKeys, NotifyOr, Retries, Signatures
from comborun.grid.keys.program import (
    ContainerOr,
    Files,
    LauncherOr,
    PlacedKeys,
    Placing,
    Taking,
    WorkdirKeys,
    WorkdirOr,
    component_names,
)
from comborun.grid.keys.resources import DisplayOr, GpuIndexes, PinWord, ReserveKeys, ResourceKeys, Servers, Threads
from comborun.grid.keys.results import ProgressKeys, ResultKeys, rules_of
from comborun.grid.keys.shapes import ONE_OR_MANY, OR_NONE, Keys, key
from comborun.grid.keys.values import (
    TEXT,
    AsWritten,
    AttributeName,
    Host,
    Line,
    Name,
    NotNegative,
    OneOf,
    PollSeconds,
    Positive,
    Reads,
    Root,
    SecretSourceWord,
    SessionName,
    Text,
    TogetherWord,
    UnitWord,
    VariableName,
    line_of,
)
from comborun.model.command import takes_range
from comborun.model.judging import WatchRules
from comborun.model.resources import PinMode
from comborun.rules.names import DEFAULT_ROOT
from comborun.rules.results.fields import ResultRules
from comborun.text import SESSION_NAME

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class SettingKeys(Keys):
    """Settings that may differ between combos."""

    WHOLE: ClassVar[frozenset[str]] = frozenset({"workdir", "placement", "progress"})
    """maps that an override replaces; all others are merged key by key"""

    episodes: Positive | None = key("episodes (or steps) of every combo")
    first_episode: NotNegative = key("index of the first episode", 0)
    seed: NotNegative | None = key("fills {seed}")
    seeds: tuple[NotNegative, ...] = key("every combo runs once with each of these for {seed}", ())
    block: Positive | None = key("episodes of one session, into which a combo is cut; else it is one session")
    shards: Shards | None = key("sessions that a combo is cut into, each with a range; auto: as many as save time")
    together: TogetherWord | None = key("environments: one process evaluates all environments of a policy")
    unit: UnitWord = key("what is counted: episode, or step for training", "episode")
    command: Text = key("the program and its arguments; no shell reads them", "")
    arguments: Text = key("more arguments after those of the command, such as those that a preset lacks", "")
    setup: Text = key("bash that runs before the command, in the same shell", "")
    workdir: WorkdirOr = key("folder in which setup and command run, or `{link_from: FOLDER}`", WorkdirKeys)
    variables: dict[VariableName, AsWritten] = key("environment variables", {})
    files: Files = key("files that are written for each attempt; {file.NAME} is their path", {})
    launcher: LauncherOr = key("torchrun: the command is started once on each GPU")
    container: ContainerOr = key("an image in which setup and command run")
    resources: ResourceKeys = key("what one session needs", ResourceKeys)
    placement: Placing = key("the GPUs of each component of the program, as RLinf writes it; fills {placement}", {})
    components: Taking = key("what each component takes; `placement` is checked against it", {})
    pin: PinWord = key("how a session finds its GPUs: cvd, device-arg, both or none", "cvd")
    display: DisplayOr = key("the X server of a session: xvfb, one that runs already, or none")
    threads: Threads | None = key("threads that a session's libraries start, at most; else as many as its cores")
    results: Annotated[ResultKeys | None, OR_NONE] = key(
        "where the records are; `none` if the program writes none", ResultKeys
    )
    progress: Annotated[ProgressKeys | None, OR_NONE] = key(
        "how the log shows progress; `none` if it does not", ProgressKeys
    )
    evidence: EvidenceKeys = key("what shows that the work is done", EvidenceKeys)
    failures: Signatures = key("class of failures -> regular expressions (Python) of log lines that show it", {})
    limits: ComboLimitKeys = key("how long a session may take", ComboLimitKeys)

    @property
    def gpus(self) -> int:
        return self.resources.gpus

    @property
    def seeded(self) -> tuple[int | None, ...]:
        """The values of {seed}, one for each session of an uncut combo."""
        return self.seeds or (self.seed,)

    @property
    def pinned(self) -> PinMode:
        """The pin mode; with a placement `none` unless the grid says otherwise, since that has the host's numbers."""
        return "none" if self.placement and "pin" not in self.model_fields_set else self.pin

    @property
    def placed(self) -> tuple[tuple[str, PlacedKeys], ...]:
        """Each component with its entry of `placement`; several may share one."""
        return tuple((name, entry) for names, entry in self.placement.items() for name in component_names(names))

    @property
    def ranks(self) -> int:
        """Number of processes of the launcher; 0 without one."""
        return (self.launcher.processes or self.gpus) if self.launcher else 0

    @property
    def rules(self) -> ResultRules:
        return rules_of(self.results)

    @property
    def watch(self) -> WatchRules:
        limits = self.limits
        return WatchRules(limits.stall_after, limits.max_time, self.evidence.grace, limits.memory == "enforce")

    @property
    def command_text(self) -> str:
        """The command and the placeholders of its files: everything that is passed to the program."""
        asked = dict.fromkeys(name for content in self.files.values() for name in content.asks)
        return " ".join([self.command, *(f"{{{name}}}" for name in asked)])

    @property
    def ranged(self) -> bool:
        return self.unit == "episode" and takes_range(self.command_text)


class Override(SettingKeys):
    """Settings for the combos that `when` matches."""

    model_config = ConfigDict(json_schema_extra={"required": ["when"], "minProperties": 2})

    when: ComboMatch = key("the combos that it applies to", ComboMatch)


class GridFile(SettingKeys):
    """Policies, the environments that they are evaluated in, and how that is done."""

    # Every key has a default, so that no mistake hides another. Checks demand the required keys.
    model_config = ConfigDict(title="comborun grid", json_schema_extra={"required": ["policies", "environments"]})

    name: Name = key("name of the grid and of its runs; else the file's", "")
    session_name: SessionName = key("how sessions are called, with {environment} and {policy}", SESSION_NAME)
    preset: Line | None = key("facts about the program: a preset's name, or the path of one")
    host: Host | None = key("ssh host on which the sessions run; else this machine")
    hosts: Hosts = key("several hosts that share the sessions: names, or maps with `host` and keys of its own", ())
    root: Root = key("folder on the host that holds the runs", DEFAULT_ROOT)
    host_python: Root | None = key("the Python 3.8 or newer that comborun itself uses on the host; else one is found")
    policies: Axes = key("the policies: a list, or a map name -> attributes", ())
    environments: Axes = key("the environments: a list, or a map name -> attributes", ())
    include: tuple[ComboMatch, ...] = key("excluded combos that run all the same", ())
    exclude: tuple[ComboMatch, ...] = key("combos that are left out", ())
    overrides: tuple[Override, ...] = key("settings for some combos; the last match wins", ())
    stop_early: StopOr | None = key("comparisons that end as soon as they are decided, fixed before the first episode")
    use_gpus: GpuIndexes | None = key("indexes of the GPUs that sessions may be granted; else all of the host")
    servers: Servers = key("model servers that sessions ask: a map name -> keys", {})
    reserve: ReserveKeys = key("what sessions leave free for others", ReserveKeys)
    limits: LimitKeys = key(  # pyright: ignore[reportIncompatibleVariableOverride]  # it is frozen
        "how much runs at once, how long and how often", LimitKeys
    )
    retry: Retries = key("by class of failures, how often a session is started again; `none` for never", {})
    after: Text | None = key("a command that runs once on the host when all has ended")
    notify: NotifyOr | None = key("a command of yours that is told about the run")
    sync: tuple[SyncKeys, ...] = key("your files that are put on the host first", ())
    replaces: Annotated[tuple[Line, ...], ONE_OR_MANY] = key(
        "your own tmux and screen sessions, which are ended before the first start", ()
    )
    secrets: dict[VariableName, SecretSourceWord] = key(
        "environment variables whose values are taken from the host or the laptop at launch", {}
    )
    slurm: SlurmKeys = key("options of its jobs with `--slurm`", SlurmKeys)
    poll: PollSeconds = key("time between two looks of the monitor", 60.0)


ProgramKind = Literal["evaluation", "training", "server"]


Lines = Annotated[tuple[Line, ...], ONE_OR_MANY]


class AttributeKeys(Keys):
    """Attributes of the two axes that the command needs, each with a description."""

    policy: dict[AttributeName, Line] = key("of policies", {})
    environment: dict[AttributeName, Line] = key("of environments", {})
    server: dict[AttributeName, Line] = key("of a model server", {})


class DefaultKeys(Keys):
    policy: dict[AttributeName, AsWritten] = key("of policies", {})
    environment: dict[AttributeName, AsWritten] = key("of environments", {})


class Cutting(NamedTuple):
    """Whether a combo of a preset's program can be cut into shards, and how, or why not."""

    possible: bool = True
    how: str = ""


def _cutting(tree: object) -> Cutting:
    text = line_of(tree)
    return Cutting(not re.match(r"none\b", text), text)


class AboutKeys(Keys):
    summary: Line = key("the program, in one line", "")
    kind: Annotated[ProgramKind, OneOf("kind")] = key(
        "evaluation, training, or server: one that others ask", "evaluation"
    )
    shards: Annotated[Cutting, Reads(_cutting, TEXT)] = key(
        "how a combo can be cut; `none: REASON` if it can't be", Cutting()
    )
    unpaired: Line = key("why episodes of two policies are not pairs; else they may be", "")
    attributes: AttributeKeys = key("attributes that the command needs, by axis", AttributeKeys)
    defaults: DefaultKeys = key("attributes that may be left out, with their defaults", DefaultKeys)
    needs: Lines = key("what must exist before the first session starts", ())
    notes: Lines = key("what must be known, each with its reason", ())
    starter: Text = key("the grid that `combo init --preset` writes, below its `preset` line", "")


class PresetOwnKeys(Keys):
    """The keys of a preset that a grid does not have."""

    about: AboutKeys = key("the program", AboutKeys)


class _Generator(GenerateJsonSchema):
    """A key may be left out, but never null: None stands for a key that is not there."""

    def field_title_should_be_set(self, schema: object) -> bool:
        del schema
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        inner = self.generate_inner(schema["schema"])
        default = schema.get("default")
        return {**inner, "default": default} if isinstance(default, (int, float, str)) else inner


def grid_schema() -> dict[str, Any]:
    """The JSON Schema of a grid file (draft 2020-12), with which editors complete keys and mark typos.

    Only `combo check` makes the checks that need several keys.
    """
    schema = GridFile.model_json_schema(schema_generator=_Generator)
    for entry in schema["$defs"]["Override"]["properties"].values():
        entry.pop("default", None)  # the grid's own value is the default there
    return {"$schema": DIALECT, **schema}


def schema_text() -> str:
    return json.dumps(grid_schema(), indent=2, ensure_ascii=False) + "\n"
