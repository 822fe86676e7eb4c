"""By what the host judges the attempts of a session: the key `judging` of its session.json. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comborun.plan import Session


def judging(session: Session) -> dict[str, Any]:
    """What comborun/host/judging.py reads as `Rules.of_session`."""
    results, evidence = session.results, session.evidence
    records = evidence.records and results.lines
    return {
        "policy": session.policy,
        "environment": session.environment,
        "unit": session.unit,
        "files": list(results.files),
        "success": results.success,
        "episode": results.episode,
        "format": results.format,
        "source": results.source,
        "videos": list(results.videos),
        "ranged": session.ranged,
        "records": records,
        "results": bool(results.files) and evidence.records and not (records or evidence.files),
        "line": evidence.line,
        "evidence_files": list(evidence.files),
    }
