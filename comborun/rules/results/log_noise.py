"""Lines of a log that say nothing about how its program goes: warnings, other loggers, exceptions beside it. Pure."""

from __future__ import annotations

from comborun.rules.patterns import late

_IGNORED = late(r"Exception ignored |--- Logging error ---|Error in (?:sys\.excepthook|atexit)|[Ee]xception in atexit")
_ASIDE = late(
    r"Exception in (?:thread|callback)|Process \S+:\s*$|Task exception was never retrieved|exception calling callback"
    r"|Future exception was never retrieved|^Available platform plugins are: "
)
_FOREIGN = late(
    r"(?i)^\W*(?:wandb|tensorboard|mlflow|comet(?:_ml)?|neptune|clearml|swanlab|sentry(?:_sdk)?|opentelemetry|statsd"
    r"|urllib3|datadog|posthog|huggingface_hub|gcsfs|boto(?:core|3)?)\b|\bTensorBoard\b|^Retrying \(Retry\("
)
_WARNS = late(
    r"^.{0,80}?(?:\bWARN(?:ING)?\b|\[[Ww]arn(?:ing)?\]|\[W\]|\b[Ww]arning:|\w+Warning: |: W (?:tensorflow|external)/)"
    r'|^\{.*"(?:level|severity)\w*": ?"[Ww]arn'
    r"|^(?:\[\w+\]:?)?\[?W\d{4} |^\s*warnings\.warn\("
)


def ignored(line: str) -> bool:
    """Whether the traceback after a line is of an exception that nobody handles."""
    return _IGNORED.search(line) is not None


def aside(line: str) -> bool:
    """The same, or of a thread, a child process or a task: the program may live on."""
    return bool(_ASIDE.search(line) or _IGNORED.search(line))


def of_others(line: str) -> bool:
    """Whether a line only warns, or is of another program's logger."""
    return bool(_WARNS.search(line) or _FOREIGN.search(line))
