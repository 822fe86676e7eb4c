"""comborun: run a policy x environment evaluation grid on a shared GPU box, and report it honestly.

import comborun

run = comborun.launch("grid.yaml", host="h100", set={"limits.parallel": 4})
for status in run.watch():
    print(status.episodes_done, "of", status.episodes_planned)
run.episodes().to_pandas()
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"
_PLACES = {
    "Episode": ("api.episodes", "Episode"),
    "Episodes": ("api.episodes", "Episodes"),
    "Run": ("api.run", "Run"),
    "launch": ("api.run", "launch"),
    "open": ("api.run", "open_run"),
    "runs": ("api.run", "all_runs"),
    **{name: ("errors", name) for name in ("GridError", "HostError", "RunGoneError", "UserError")},
}
__all__ = [*_PLACES]  # noqa: PLE0604  they are names


def __dir__() -> list[str]:
    return [*__all__, "errors", "__doc__", "__name__", "__version__"]


def __getattr__(name: str) -> object:
    """Load what is asked for: `combo --help` needs none of it."""
    if name == "errors":
        return import_module(f"{__name__}.errors")
    if name not in _PLACES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    module, attribute = _PLACES[name]
    found: object = getattr(import_module(f"{__name__}.{module}"), attribute)
    return found
