"""The programs: `combo`, which is also `python -m comborun`, and `combo-monitor`."""

from __future__ import annotations

import sys


def main() -> None:
    """The program `combo`."""
    try:
        from comborun.cli import combo, guarded

        sys.exit(guarded(combo))
    except KeyboardInterrupt:  # while the commands were still being loaded
        sys.exit(130)


def monitor() -> None:
    """The program `combo-monitor`: the same as `combo monitor`."""
    try:
        from comborun.cli import guarded
        from comborun.cli.status import monitor as command

        sys.exit(guarded(command))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
