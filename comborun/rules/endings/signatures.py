"""What ended a program, found in the last lines of its log, and of which class of failures that is. Pure.

It is found by structure: the last exception, or a fatal line of a runtime. Lines that only warn, and lines of other
programs' loggers, name nothing. Nor do exceptions that Python or a logger reports and ignores. What was printed before
the last exception counts only where that one says that something else failed: a child process, a cause that it names,
a simulator. Only such lines are held against the wordings of the classes (failures.py).

Wordings only name a failure that other evidence shows; they never make a session fail. A line that matches `ignore` is
checked by no other pattern, because good runs print it too. A line after which the program made progress is not checked
either.
"""

from __future__ import annotations

import re

from comborun.rules import patterns
from comborun.rules.endings.failures import Failure
from comborun.rules.patterns import late
from comborun.rules.results import log_noise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Signature = tuple[str, str]

IGNORE = "ignore"

BUILTIN: tuple[tuple[str, tuple[str, ...]], ...] = (
    (IGNORE, ("ERROR_INCOMPATIBLE_DRIVER", "vkCreateInstance failed", "Failed to create any GPU devices")),
    (IGNORE, ("Disabling key-value database because another kit process is locking it",)),
    # An account without money answers like a limit of requests, but waiting does not mend it.
    (Failure.ERROR.value, ("insufficient_quota", "[Cc]redit balance is too low", "billing_(hard_limit|not_active)")),
    (Failure.ERROR.value, ("Error code: 402", "402 Client Error")),
    *((failure.value, failure.row.signatures) for failure in Failure if failure.row.signatures),
)
_SPECIAL = frozenset("\\^$*+?{}[]|()")


class Ended:
    """What is known of an end apart from its log."""

    def __init__(self, *, records: int = 0, killed: bool = False, served: bool = False) -> None:
        self.records = records
        """records that the session has left: then a message about a port in use is about another program"""
        self.killed = killed
        """whether a signal ended it"""
        self.served = served
        """whether it uses a model server; else none was lost"""


def find(lines: Sequence[str], own: Iterable[Signature], ended: Ended) -> tuple[str, str]:
    """The class of what ended a program, and its line. The class is empty if no wording fits; then the line is the
    first that says itself what failed. It is empty without an exception or a fatal line.

    `own`: the grid's signatures, which come first, also for the last line of the program. If nothing that ended it has
    a class, they are held against all lines of the program: a grid knows its program. `lines`: the end of a log, after
    the last progress.
    """
    excluded = {Failure.LAUNCH_FAILED.value if ended.records else "", "" if ended.served else Failure.SERVER_LOST.value}
    text = "\n".join(lines)
    ours = [(failure, finder) for failure, pattern in own if (finder := _finder(pattern))]
    known = [
        (failure, finder) for failure, words in BUILTIN if failure not in excluded for finder in _there(words, text)
    ]
    for failure, finder in (*ours, *known):
        if failure == IGNORE:
            lines = [line for line in lines if not finder(line)]
    ours, known = ([one for one in some if one[0] != IGNORE] for some in (ours, known))
    fatal = lambda line: any(finder(line) for _, finder in known)  # noqa: E731
    program = [line for line in lines if line.strip() and not log_noise.of_others(line)]
    lines = [one for line in lines for one in _unpacked(line)]
    groups = list(candidates(lines, killed=ended.killed, fatal=fatal))
    if found := _first(ours, [*(groups[0] if groups else ()), *program[-1:]]):
        return found
    for group in groups:
        if found := _first(ours, group) or _first(known, group):
            return found
    if found := _first(ours, program):
        return found
    telling = [group for group in groups if group and not says_other_failed(group)]
    return "", next((group[0] for group in (*telling, *groups[:1]) if group), "")


def beside(text: str) -> tuple[int, str]:
    """How many lines of a log tell of a failure that another try mends, such as one of memory, and the first of them,
    though the program went on. Lines that only warn tell of none, nor does the source that a traceback quotes.
    """
    retried = [words for failure, words in BUILTIN if failure != IGNORE and Failure(failure).row.retries]
    finders = [finder for words in retried for finder in _there(words, text)]
    lines = text.split("\n") if finders else ()
    said = [line for before, line in zip(["", *lines], lines) if not _FRAME.search(before)]
    told = [line for line in said if any(finder(line) for finder in finders) and not log_noise.of_others(line)]
    return len(told), told[0].strip() if told else ""


def _first(searched: Iterable[tuple[str, Callable[[str], object]]], lines: Sequence[str]) -> tuple[str, str] | None:
    """The first class that fits a line, and the last such line."""
    for failure, finder in searched:
        matches = [line for line in lines if finder(line)]
        if matches:
            return failure, matches[-1]
    return None


def _there(wordings: Iterable[str], text: str) -> list[Callable[[str], object]]:
    """Returns a search for those wordings that occur anywhere in the text. For most logs there are none."""
    found = [one for one in wordings if (re.search(one, text, re.MULTILINE) if set(one) & _SPECIAL else one in text)]
    finder = _finder("|".join(one if set(one) & _SPECIAL else re.escape(one) for one in found)) if found else None
    return [finder] if finder else []


def _unpacked(line: str) -> list[str]:
    """A traceback within one line, such as in a log of JSON, as lines; nothing of one that only warns."""
    packed = _PACKED.search(line) if "\\n" in line else None
    if packed is None:
        return [line]
    return [] if log_noise.of_others(line) else packed.group().replace('\\"', '"').split("\\n")


def _finder(pattern: str) -> Callable[[str], object] | None:
    try:
        return patterns.compiled(pattern).search
    except patterns.PatternError:
        return None


# What ended a program

_TRACEBACK = "Traceback (most recent call last)"
_CAUSE = "The above exception was the direct cause of the following exception"
_CONTEXT = "During handling of the above exception, another exception occurred"
_GROUP = "Exception Group "
_STACK = late(r"\s|$|> File|\[Previous line|[│└├╭╰❱]")
_GUTTER = late(r"^\s*(?:\+-[-+ ]*(?:\d+ )?-*|[|+] ?)?\s*")
_EXCEPTION = late(
    r"(?:\w+\.)*\w*(?:Error|Exception|Expired|Interrupt|Exit)(?:[A-Z]\w*)?(?:\(\w+\))?"
    r"(?::(?!\s*[-+\d.e]+\s*%?$)|$)"  # `TrackingError: 0.02` is a metric
)
_UNFINISHED = late(r"(?:[:(\[{,]|:\s*[\"']+)\s*$")
"""an exception whose text goes on in the next line"""
_MORE_LINES = 10
_FRAME = late(r'File "[^"]+", line \d+')
"""after it a traceback quotes a line of source"""

_OF_WORKER = late(r"\bpid=\d|^\s*\[\w*rank_?\d+\]|^\s*\[default\d+\]")
_LAUNCHER = late(r"\btorch[./]distributed[./](?:elastic|run|launcher)\b|^\s*(?:\[\w*rank_?\d+\]|\[default\d+\]):?\s*$")
"""what a launcher says of its workers"""
_PACKED = late(r'Traceback \(most recent call last\):\\n(?:[^"\\]|\\.)*')
_ERROR_LINE = late(
    r"^.{0,80}?(?:\[(?:[Ee]rror|E|[Ff]atal)\]|\b(?:ERROR|FATAL|CRITICAL)\b)|^(?:\[\w+\]:?)?\[?[EF]\d{4} "
)
"""of a logger: after a fatal line it tells more of it, and not that the program lives on"""
_OF_MODULE = late(r"(?:[a-z_]\w*\.)+\w*(?:Error|Exception)\b")
"""an exception by its full name: of a module with the name of a logger, it is no logger's line"""
_NOTHING = late(r"(?:TypeError|AttributeError): .*NoneType")
"""what was to be made has not been made: why stands right before, if anywhere"""

_FATAL = late(
    r"Fatal Python error|terminate called |^\s*what\(\): |Segmentation fault|[Bb]us error|\bAborted\b|core dumped"
    r"|Floating point exception|Illegal instruction|\bKilled$|^\*\*\* |\[Fatal\]|^F\d{4} |Check failed: "
    r"|Assertion .*failed|double free or corruption|free\(\): |malloc\(\)|malloc_consolidate|corrupted size"
    r"|stack smashing detected|panicked at"
    r"|SIG(?:SEGV|ABRT|BUS|ILL|FPE)\b|[Ss]ignal 11\b|GPU crash|no Qt platform plugin"
    r"|^\S{0,30}\s*(?:FATAL|CRITICAL|[Ff]atal):|^X Error of failed request"
    r"|Unable to create windowless context|(?:PhysX|internal) error|slurmstepd: error|Killed process"
)
_CRASH = late(
    r"^\*\*\* |^F\d{4} |Check failed: "
    r"|Segmentation fault|core dumped|SIG(?:SEGV|ABRT|BUS)|Aborted|Fatal Python error|[Ss]ignal 11\b"
)
_HANDLED = late(r"(?:\w+\.)*(?:Connection|Timeout|HTTP|URL|File|Import|ModuleNotFound|Key|Index|Attribute|Stop)")
"""exceptions that programs handle in passing: one that comes meanwhile has another cause"""
_DUMP = late(r"\s+\S|Current thread|Thread 0x|Extension modules|\.\.\.|#\d+ |\[\w+:\d+\]")
_DERIVED = late(
    r"^(?:\w+\.)*(?:EOFError|BrokenPipeError|ConnectionResetError|CalledProcessError|BrokenProcessPool|SystemExit"
    r"|ProcessExitedException|ProcessRaisedException|ChildFailedError|DistBackendError|AlreadyClosedPoolError"
    r"|RayActorError|ActorDiedError|WorkerCrashedError|KeyboardInterrupt)\b"
    r"|DataLoader worker|[Ff]ailed to create simulation|root cause|[Ee]rrors? above|[Ee]ngine core|Engine process"
)
"""exceptions which only say that something else has failed, which said why itself"""


class Said:
    """An exception, or a fatal line, in a log."""

    def __init__(self, texts: list[str], *, exception: bool, aside: bool = False) -> None:
        self.texts = texts
        """the lines that name it"""
        self.exception = exception
        self.aside = aside
        """of a thread, a child process or a task: the program may live on"""
        self.before: Said | None = None
        """the exception that it names as its cause, or during whose handling it came"""
        self.warned = False
        """whether it is aside only because the line before it warns"""
        self.survived = False
        """whether the program wrote on after it"""
        self.crash = not exception and any(map(_CRASH.search, texts))

    @property
    def derived(self) -> bool:
        return self.exception and says_other_failed(self.texts)


def says_other_failed(texts: Sequence[str]) -> bool:
    """Whether the lines of an exception only say that something else has failed: `ChildFailedError` of torchrun."""
    return any(map(_DERIVED.search, texts))


def candidates(lines: Sequence[str], *, killed: bool, fatal: Callable[[str], object]) -> Iterator[list[str]]:
    """The lines that may name what ended a program, the most telling ones first: each group only if the one before
    names no class of failures.

    `killed`: a signal ended it, so an exception that it survived did not. `fatal`: further lines that are fatal.
    A crash that was survived was another process's.
    """
    found = [one for one in _Reading(lines, fatal).found if not (one.crash and one.survived)]
    if not found or (killed and found[-1].survived):
        return
    if found[-1].warned and not (killed or found[-1].survived):  # nothing came after it: it is the program's own
        found[-1].aside = False
    passage = [found[-1]]
    for one in reversed(found[:-1]):
        if one.survived:
            break
        passage.insert(0, one)
    exception = next((one for one in reversed(passage) if one.exception and not one.aside), None)
    if exception is None:
        yield from _without_exception(passage)
        yield from _others(found, passage, passage[-1])
        return
    yield from _chain(exception)
    if exception.derived or any(map(_NOTHING.search, exception.texts)):
        at = passage.index(exception)
        for one in reversed(passage[:at]):
            yield from _chain(one)
        yield from _others(found, passage, exception)
    after = passage[passage.index(exception) + 1 :]
    if killed:  # it crashed while it ended
        yield [text for one in after if not one.exception for text in one.texts]


def _others(found: Sequence[Said], passage: Sequence[Said], last: Said) -> Iterator[list[str]]:
    """What threads, children and ranks said before, if the last exception only says that something else failed."""
    if last.derived:
        for one in reversed([one for one in found if one.aside and one not in passage]):
            yield from _chain(one)


def _without_exception(passage: Sequence[Said]) -> Iterator[list[str]]:
    """Fatal lines together: a runtime prints several. Then exceptions of threads and children, the last one first."""
    last = passage[-1]
    native = [text for one in passage if not one.exception for text in one.texts]
    beside = [one for one in reversed(passage) if one.exception]
    if last.exception or last.crash:  # a crash often follows what a thread or child has said
        for one in beside:
            yield from _chain(one)
    yield native


def _chain(exception: Said) -> Iterator[list[str]]:
    one: Said | None = exception
    while one:
        yield one.texts
        one = one.before


class _Reading:
    """Finds all exceptions and fatal lines of a log, in their order."""

    def __init__(self, lines: Sequence[str], fatal: Callable[[str], object]) -> None:
        self.found: list[Said] = []
        self._lines = lines
        self._fatal = fatal
        self._chained = ""
        """what links the next exception to the last one"""
        at = 0
        while at < len(lines):
            at = self._read(at)

    def _read(self, at: int) -> int:
        """Read what begins in a line; returns the line after it."""
        line = self._lines[at]
        mark = line.find(_TRACEBACK)
        if mark >= 0:
            return self._traceback(at, line[:mark])
        if _CAUSE in line or _CONTEXT in line:
            self._chained = _CAUSE if _CAUSE in line else _CONTEXT
        elif not line.strip() or ((others := log_noise.of_others(line)) and not _OF_MODULE.match(line)):
            pass
        elif _EXCEPTION.match(line):
            text, after = self._text(at, "")
            self._add(Said(text, exception=True, aside=others))
            return after
        elif _FATAL.search(line) or self._fatal(line):
            self._add(Said([line], exception=False))
        elif self.found and not (log_noise.aside(line) or self._goes_on(line) or _LAUNCHER.search(line)):
            self.found[-1].survived = True
        return at + 1

    def _goes_on(self, line: str) -> bool:
        """Whether a line is part of what a runtime prints about a crash, or a logger about an error."""
        last = self.found[-1]
        more = (last.crash and _DUMP.match(line)) or (not last.exception and _ERROR_LINE.match(line))
        return bool(more) and not last.survived

    def _add(self, one: Said) -> None:
        if self._chained and self.found:
            before = self.found.pop()
            one.aside = before.aside
            if self._chained == _CAUSE or not any(map(_HANDLED.match, before.texts)):
                one.before = before
        self._chained = ""
        self.found.append(one)

    def _traceback(self, at: int, prefix: str) -> int:
        if _GROUP in prefix:
            return self._group(at)
        head = self._head(at)
        lines, after = self._lines, at + 1
        while after < len(lines) and _TRACEBACK not in lines[after] and _STACK.match(_without(lines[after], prefix)):
            after += 1
        if after >= len(lines):
            return after
        if _TRACEBACK in lines[after]:
            return after
        text, after = self._text(after, prefix)
        if not log_noise.ignored(head):
            aside = bool(log_noise.aside(head) or _OF_WORKER.search(prefix))
            warned = not aside and log_noise.of_others(head)
            one = Said(text, exception=True, aside=aside or warned)
            one.warned = warned
            self._add(one)
        return after

    def _head(self, at: int) -> str:
        """The last line before a traceback that is not empty, and the one before if that belongs to it."""
        before = [line for line in self._lines[max(0, at - 3) : at] if line.strip()]
        if before and before[-1].startswith("future:"):
            return " ".join(before[-2:])
        return before[-1] if before else ""

    def _text(self, at: int, prefix: str) -> tuple[list[str], int]:
        """The lines of an exception, and the line after them. Its text may go on where the first line ends in the
        middle, and in lines that are indented.
        """
        texts = [_without(self._lines[at], prefix)]
        unfinished, after = bool(_UNFINISHED.search(texts[0])), at + 1
        for line in self._lines[after : after + _MORE_LINES]:
            text = _without(line, prefix)
            if _TRACEBACK in text or log_noise.of_others(text) or not (unfinished or re.match(r"\s+\S", text)):
                break
            after += 1
            if text.strip():
                texts.append(text)
                unfinished = False
        return texts, after

    def _group(self, at: int) -> int:
        """An exception group: its exceptions count as one."""
        texts, after = [], at + 1
        while after < len(self._lines) and re.match(r"\s*[|+]", self._lines[after]):
            line = _GUTTER.sub("", self._lines[after])
            if _EXCEPTION.match(line) and "Group: " not in line:
                texts.append(line)
            after += 1
        self._add(Said(texts, exception=True))
        return after


def _without(line: str, prefix: str) -> str:
    """A line without the prefix that a launcher or a logger puts before each; numbers in it may change."""
    size = len(prefix)
    if size and re.sub(r"\d", "0", line[:size]) == re.sub(r"\d", "0", prefix):
        return line[size:]
    return line
