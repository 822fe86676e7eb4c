"""Who goes first where not all have room, so that a host stays full and nobody waits for ever. Pure."""

from __future__ import annotations

from comborun.rules.placement import Kept

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

    from comborun.rules.placement import Lack, Ledger, Request


_NOT_PASSED = frozenset({"unknown", "token", "slots", "lease"})
"""whoever waits for this is not in the way of those behind it; a token is kept for it at once"""


class Line:
    """The order: first come, first served, and those that don't fit are passed by those that do.

    Whoever doesn't fit may be passed as often as sessions ran when it first had to wait. Then what it needs is kept for
    it, on the GPUs where it will fit first, so nobody waits for ever. Nothing is kept of what others than this run take
    away: that could last for ever.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.refused: dict[object, tuple[str, Lack]] = {}
        """kind -> who of it comes first, and why it has to wait; in this round"""
        self._passes: dict[object, int] = {}
        """kind -> how often it may still be passed"""
        self._asked: dict[object, tuple[Request, frozenset[int]]] = {}

    def round(self) -> None:
        """Begin a new look at those that wait."""
        self.refused.clear()
        self._asked.clear()
        self.ledger.kept = Kept()

    def refuse(self, who: str, request: Request, lack: Lack, barred: Iterable[int] = ()) -> None:
        """It has to wait, and those of its kind with it. `barred`: GPUs that are not for it, whoever runs there."""
        kind = request.kind
        self.refused[kind] = who, lack
        self._asked[kind] = request, frozenset(barred)
        for token in request.tokens:
            self.ledger.kept.tokens.setdefault(token, who)
        if lack.reason in _NOT_PASSED or lack.of or not self.ledger.possible(request, barred):
            return
        ours = sum(share.ours for share in self.ledger.shares.values())
        if self._passes.setdefault(kind, ours) <= 0:
            self._keep(who, request, barred)

    def started(self, request: Request) -> None:
        """Those that wait for some of the same have been passed."""
        self._passes.pop(request.kind, None)
        for kind, (who, _) in self.refused.items():
            asked, barred = self._asked[kind]
            if kind in self._passes and _compete(asked, request):
                self._passes[kind] -= 1
                if self._passes[kind] == 0:
                    self._keep(who, asked, barred)

    def _keep(self, who: str, request: Request, barred: Iterable[int]) -> None:
        kept = self.ledger.kept
        kept.cpus += request.cpus
        kept.memory += request.memory
        candidates = set(self.ledger.room.candidates(request)) - set(barred) - set(kept.gpus)
        open_ = [gpu for gpu in candidates if self.ledger.could_have(request, gpu)]
        if request.gpus and len(open_) >= request.gpus:  # else the others are kept for one before it
            kept.gpus.update(dict.fromkeys(self.ledger.least(open_, request.gpus), who))


def _compete(one: Request, other: Request) -> bool:
    return bool((one.gpus and other.gpus) or (one.cpus and other.cpus) or (one.memory and other.memory))
