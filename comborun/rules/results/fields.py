"""How a grid reads rows: which fields hold a verdict, an episode and names, and the combo that rows are of. Pure.

What a row then is says `one_row.py`.
"""

from __future__ import annotations

from comborun.rules.facts import Fact, json_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping

TORN, NO_RECORD, POLICY, ENVIRONMENT = "torn", "no_record", "policy", "environment"
INDEX, OUTSIDE, REPEATED, UNREADABLE, FORMAT = "index", "outside", "repeated", "unreadable", "format"
"""why a row does not count"""

IGNORE = "ignore"
"""for policy, environment or seed: whatever rows say is accepted"""
LINE = "line"
"""for the episode: rows have no index and are numbered as they were written"""
NO_VERDICTS = "none"
"""for success: rows have numbers and no verdicts"""
FIELDS = ("success", "episode", "policy", "environment", "seed")
"""the keys of `results` that name a field"""
OUTPUT, LOG = "output", "log"
"""where records are: in files below the output folder, or in the log"""
_WORDS = {"policy": IGNORE, "environment": IGNORE, "seed": IGNORE, "episode": LINE, "success": NO_VERDICTS}

TRAINING = "train-step"
"""the format of lines that count steps of a training, and no episodes"""
MISSING = object()
"""stands for a field that a row doesn't have"""
NAMES_ANOTHER = "names_another"
"""code of the fact that a row names another policy or environment: `kind`, `named`, `expected`"""
TEXT_MOST = 300
"""characters of a text from a result file that a fact quotes"""


class RefusedError(Exception):
    """The row is not a record of its session, or the file holds no rows: `reason` is a word from above, `fact` tells
    what is wrong.
    """

    def __init__(self, reason: str, code: str, **fields: Any) -> None:
        super().__init__(code)
        self.reason = reason
        self.fact = Fact(code, **fields)


def unreadable(error: Exception) -> RefusedError:
    """The refusal of a file that a reader trips over: nothing that a program writes may do more harm than that."""
    return RefusedError(UNREADABLE, "reader_failed", error=f"{type(error).__name__}: {error}"[:TEXT_MOST])


class Field:
    """A field of the rows: its name, or one of the words above instead, perhaps with a test of its value. Frozen."""

    def __init__(self, key: str, value: object = "") -> None:
        """Of a key of `results`: the value that a plan holds, a name, a word, a list of names or a map. Foreign values
        mean nothing.
        """
        text = value if isinstance(value, str) else ""
        given = json_of(text) if text.startswith("{") else value  # a plan of the former version has JSON in a text
        names = value if key == "episode" and isinstance(value, (list, tuple)) else ()
        self.names = tuple(one for one in names if isinstance(one, str))
        """several fields that together tell an episode from others, which are numbered as they come"""
        data = given if isinstance(given, dict) else {}
        self.key = key
        self.word = text if text and text == _WORDS.get(key) else ""
        self.name = str(data.get("field", key)) if data else text or key
        self.path = tuple(self.name.split(".")) if "." in self.name else ()
        self.origin = integer(data.get("from")) or 0
        """the number of the first episode in the rows"""
        values = data.get("any_of")
        self.values = tuple(map(str, values)) if isinstance(values, (list, tuple)) else ()
        """the accepted values, as they are written"""
        self.at_least, self.at_most = number(data.get("at_least")), number(data.get("at_most"))

    def as_data(self) -> Any:
        """The value for a plan: the name or the word if that says everything, else a map."""
        if self.word or self.names:
            return self.word or list(self.names)
        told: dict[str, Any] = {"field": self.name, "from": self.origin or None, "any_of": list(self.values) or None}
        told.update(at_least=self.at_least, at_most=self.at_most)
        told = {key: value for key, value in told.items() if value is not None}
        plain = len(told) == 1 and self.name != _WORDS.get(self.key) and not self.name.startswith("{")
        return self.name if plain else told

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Field) and (self.key, self.as_data()) == (other.key, other.as_data())

    def __hash__(self) -> int:
        return hash((self.key, self.name))

    def __repr__(self) -> str:
        return f"Field({self.key!r}, {self.as_data()!r})"

    def find(self, row: Mapping[str, Any]) -> Any:
        """The value in a row, or MISSING. A name with dots that is not a field is a path."""
        if self.name in row:
            return row[self.name]
        value: Any = row if self.path else MISSING
        for step in self.path:
            value = value.get(step, MISSING) if isinstance(value, dict) else MISSING
        return value

    @property
    def tests(self) -> bool:
        """Whether the grid says which values mean a success."""
        return bool(self.values) or self.at_least is not None or self.at_most is not None

    def passes(self, value: object) -> bool | None:
        """Whether a value is one of the accepted ones, or within the limits; None if it can't be compared."""
        if self.values:
            return any(_same(value, wanted) for wanted in self.values)
        amount = number(value)
        if amount is None:
            return None
        return (self.at_least is None or amount >= self.at_least) and (self.at_most is None or amount <= self.at_most)


def integer(value: object) -> int | None:
    """The integer that a JSON value holds: 7 and 7.0, but not true, "7" or 7.5."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None


def number(value: object) -> float | None:
    """The finite number that a value is or spells, or None. True and false are not numbers."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        amount = float(value)
    except (ValueError, OverflowError):
        return None
    return amount if abs(amount) < float("inf") else None


def amount_of(value: object) -> float | None:
    """The number that a value is or spells, also as a percentage: `62.5%`."""
    return number(value.rstrip(" %") if isinstance(value, str) else value)


def _same(value: object, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted.lower() == str(value).lower()
    if isinstance(value, (int, float)):
        return number(wanted) == value
    return isinstance(value, str) and value.strip() == wanted


class ResultRules:
    """Where a session's records are, and what their fields mean: the key `results` of a grid, for one combo. Frozen.

    The grid makes it, a plan and session.json hold it as `as_data`, and whoever reads rows goes by it.
    """

    __slots__ = (
        *("base", "compare", "environment", "episode", "files", "format", "metrics", "pattern", "policy", "seed"),
        *("source", "success", "videos", "errors", "margin", "named", "nominal", "factors", "lower", "higher"),
    )

    def __init__(self, files: Iterable[str] = ("**/*.jsonl",), **given: Any) -> None:
        self.files = tuple(files)
        """globs below the output folder; empty: the program leaves no records, and its exit code decides"""
        self.success, self.episode, self.policy, self.environment, self.seed = (
            value if isinstance(value := given.pop(key, ""), Field) else Field(key, value) for key in FIELDS
        )
        self.metrics: tuple[str, ...] = tuple(given.pop("metrics", ()))
        """the fields to report, in this order; empty: every numeric field"""
        self.compare: tuple[str, ...] = tuple(given.pop("compare", ()))
        """metrics by which policies are compared, as by their success rates"""
        self.lower: tuple[str, ...] = tuple(given.pop("lower", ()))
        """those of them of which less is better"""
        self.higher: tuple[str, ...] = tuple(given.pop("higher", ()))
        """those of which the grid says that more is better; of others the name may say it"""
        self.videos: tuple[str, ...] = tuple(given.pop("videos", ()))
        self.format: str = given.pop("format", "")
        """one of FORMATS (formats.py); empty: recognised for each file"""
        self.source: str = given.pop("source", OUTPUT)
        self.pattern: str = given.pop("pattern", "")
        """regular expression: a log line that matches is a record, and the groups are its fields"""
        self.errors: tuple[str, ...] = tuple(given.pop("errors", ()))
        """regular expressions of log lines that tell of a caught error: the verdict that follows is errored"""
        self.margin: float = given.pop("margin", 0.0)
        """a difference of success rates that does not matter: claims of "not worse by more"; 0: there are none"""
        self.nominal: str = given.pop("nominal", "")
        """the environment that the others are compared with, for each policy"""
        self.factors: tuple[str, ...] = tuple(given.pop("factors", ()))
        """fields that are set before an episode and may go with its success"""
        self.base: int = given.pop("base", 0)
        """the episode that is 0 in rows and in the command: each of `seeds` has its own range of the combo"""
        self.named: tuple[str, ...] = tuple(given.pop("named", ()))
        """the environments of one process (`together`), as rows name them: each row must; empty: a row need not"""
        if given:
            raise TypeError(f"{', '.join(given)}: no rule of results")

    @property
    def has_records(self) -> bool:
        return bool(self.files) or self.source == LOG

    @property
    def counted(self) -> bool:
        """Whether its records are episodes; a training has none."""
        return self.has_records and self.format != TRAINING

    def replace(self, **changes: Any) -> ResultRules:
        return ResultRules(**{**{key: getattr(self, key) for key in self.__slots__}, **changes})

    def as_data(self) -> dict[str, Any]:
        """For JSON, without what is as by default."""
        pairs = ((key, getattr(self, key), getattr(_BY_DEFAULT, key)) for key in self.__slots__)
        return {key: _data(value) for key, value, default in pairs if value != default}

    @classmethod
    def of(cls, data: object) -> ResultRules:
        """From its JSON, also that of the former version. Values of other types are as by default."""
        given = data if isinstance(data, dict) else {}
        known = {key: given[key] for key in FIELDS if isinstance(given.get(key), (str, dict, list))}
        for key in ("files", "metrics", "compare", "lower", "higher", "videos", "errors", "named", "factors"):
            if isinstance(given.get(key), list):
                known[key] = [one for one in given[key] if isinstance(one, str)]
        texts = ("format", "source", "pattern", "nominal")
        known.update((key, given[key]) for key in texts if isinstance(given.get(key), str))
        margin = number(given.get("margin"))
        if margin is not None and 0 < margin < 1:
            known["margin"] = margin
        return cls(**known, base=integer(given.get("base")) or 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResultRules) and self.as_data() == other.as_data()

    def __hash__(self) -> int:
        return hash((self.files, self.format, self.source))

    def __repr__(self) -> str:
        return f"ResultRules.of({self.as_data()!r})"


def _data(value: Any) -> Any:
    return value.as_data() if isinstance(value, Field) else list(value) if isinstance(value, tuple) else value


_BY_DEFAULT = ResultRules()


class Identity:
    """What identifies a record of a session: its combo, and the fields that hold verdict, index and the combo's names.

    If policy or environment is None, each row must name it. If it is empty, it is unknown and not checked.
    """

    def __init__(
        self, policy: str | None, environment: str | None, rules: ResultRules = _BY_DEFAULT, planned: int = 0
    ) -> None:
        self.policy = policy
        self.environment = environment
        self.rules = rules
        self.planned = planned
        """number of episodes of its attempt, by which a reader chooses among what looks like episodes; 0: not known"""
        self.success, self.episode, self.seed = rules.success, rules.episode, rules.seed
        self.policy_field, self.environment_field = rules.policy, rules.environment
        self.base, self.pattern = rules.base, rules.pattern

    @property
    def asks_environment(self) -> bool:
        """Whether rows say of which environment they are, because the session does not."""
        return self.environment is None or bool(self.rules.named)

    @property
    def verdict_key(self) -> str:
        """The field into which a format writes a verdict that it finds itself."""
        return "success" if self.success.tests or self.success.word else self.success.name

    def by(self, **rules: Any) -> Identity:
        """The same combo with other rules, such as the field names of a format."""
        return Identity(self.policy, self.environment, self.rules.replace(**rules), self.planned)

    def of(self, policy: str | None, environment: str | None) -> Identity:
        """The same rules for another combo."""
        return Identity(policy, environment, self.rules, self.planned)
