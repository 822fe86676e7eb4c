"""comborun: run a policy x environment evaluation grid on a shared GPU box, and report it honestly.

import comborun

run = comborun.launch("grid.yaml", host="h100", set={"limits.parallel": 4})
for status in run.watch():
    print(status.episodes_done, "of", status.episodes_planned)
run.episodes().to_pandas()
"""

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.api.episodes import Episode, Episodes
    from comborun.api.run import Run, launch
    from comborun.api.run import open_run as open  # noqa: A004  comborun.open
    from comborun.errors import GridError, HostError, RunGoneError, UserError

__version__ = "0.1.0"
__all__ = ["Episode", "Episodes", "GridError", "HostError", "Run", "RunGoneError", "UserError", "launch", "open"]

_PLACES = {
    "Episode": ("api.episodes", "Episode"),
    "Episodes": ("api.episodes", "Episodes"),
    "Run": ("api.run", "Run"),
    "launch": ("api.run", "launch"),
    "open": ("api.run", "open_run"),
    **{name: ("errors", name) for name in ("GridError", "HostError", "RunGoneError", "UserError")},
}


def __getattr__(name: str) -> object:
    """Load what is asked for: `combo --help` needs none of it."""
    if name not in _PLACES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    module, attribute = _PLACES[name]
    return getattr(import_module(f"{__name__}.{module}"), attribute)
