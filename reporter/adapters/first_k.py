"""Programs that stop at the first K episodes that end, whichever copy of the environment they ran in.

A success ends early and a failure runs to its limit, so that successes are counted too often; the more copies in
relation to K, the worse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.reporter.adapters import CautionKind

if TYPE_CHECKING:
    from comborun.reporter.adapters.findings import Findings

EPISODES_PER_COPY = 20
"""from here on the bias is below what so few episodes can show"""


def warn(findings: Findings, copies: int, episodes: int) -> None:
    """Say so where there are enough copies for it to matter, and that the order of ending pairs nothing."""
    if copies > 1:
        findings.caution(CautionKind.ENDING_ORDER, "its episodes are numbered in the order in which they ended")
    if copies > 1 and copies * EPISODES_PER_COPY > episodes:
        findings.caution(
            CautionKind.FIRST_K,
            f"the first {episodes} episodes that ended in {copies} copies of the environment: successes end early and"
            " are counted too often",
            copies,
        )
