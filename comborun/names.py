"""Names for files and sessions, made of the names that people wrote."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from comborun.errors import UserError

LONGEST = 60
"""characters; screen takes 80, and the run's mark and the attempt are still to come"""
_DIGEST = 8


def clean(name: str) -> str:
    """`name` in `[A-Za-z0-9_-]`, never empty and never with a dash in front. Raises UserError when nothing is left."""
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    cleaned = re.sub(r"[^A-Za-z0-9_-]+", "-", plain).strip("-")
    if not cleaned:
        raise UserError(
            f"the name {name!r} has no letter or digit that a file name can hold",
            "use a name with at least one of A-Z, a-z, 0-9, _",
        )
    return cleaned


def session_name(environment: str, policy: str) -> str:
    """`<environment>_<policy>`, cleaned; over 60 characters it is cut and ends with a digest of both names."""
    return shortened(f"{clean(environment)}_{clean(policy)}", f"{environment}\0{policy}")


def shortened(cleaned: str, whole: str) -> str:
    """`cleaned` in at most 60 characters; what is cut off is replaced by a digest of `whole`."""
    if len(cleaned) <= LONGEST:
        return cleaned
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{cleaned[: LONGEST - _DIGEST - 1]}-{digest}"
