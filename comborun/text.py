"""Text for people: guesses at misspelled words, text that is safe to print, and names for files and sessions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import zip_longest

from comborun.errors import UserError, shape
from comborun.rules import vocabulary
from comborun.rules.counting import escape

several, first_of = vocabulary.several, vocabulary.first_of

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
"""bytes"""


_ALIKE = 0.65
"""least ratio of difflib: `cdv` is like `cvd` (0.67), and `nope` is not like `openpi` (0.60)"""


def close_to(word: str, known: Iterable[str]) -> str:
    """The known word that is most like `word`; else the one that begins with it; else empty.

    A known word is itself. Of a word and its plural the shorter is meant. Empty also if the best differ in case only.
    """
    import difflib  # slow to import, and only a mistake needs it

    folded: dict[str, set[str]] = {}
    for entry in known:
        folded.setdefault(entry.casefold(), set()).add(entry)
    meant = word.casefold()
    if word in folded.get(meant, ()):
        return word
    close = difflib.get_close_matches(meant, folded, n=1, cutoff=_ALIKE)
    begun = sorted(entry for entry in folded if len(word) > 2 and entry.startswith(meant))
    one_word = begun and all(entry.startswith(begun[0]) for entry in begun)
    alike = folded[[*close, *begun][0]] if close or one_word else set()
    return alike.pop() if len(alike) == 1 else ""


def alike_to(word: str, known: Iterable[str]) -> list[str]:
    """The known words that `word` may stand for: the one that is close to it, then those that are about as close."""
    import difflib

    known = list(dict.fromkeys(known))
    best = close_to(word, known)
    if best in ("", word):
        return [best] * bool(best)

    def apart(one: str) -> int:
        """Number of letters that only one of the two has."""
        blocks = difflib.SequenceMatcher(None, word.casefold(), one.casefold()).get_matching_blocks()
        return len(word) + len(one) - 2 * sum(block.size for block in blocks)

    most = apart(best) + 1
    return [best, *(one for one in known if one != best and apart(one) <= most and close_to(word, [one]))]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint: the most similar known word, or else all known words if there are few."""
    known = list(known)
    if close := close_to(word, known):
        return f"did you mean `{close}`?"
    return f"known here: {listed(known)}" if 0 < len(known) <= 12 else ""


def listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


ESCAPE = escape()
INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode categories of invisible characters, some of which control a terminal"""


def harmless(text: str, keep: str = "\n\t") -> str:
    """`text` without escape sequences and control characters, except those in `keep`."""
    bare = text
    for one in keep:
        bare = bare.replace(one, "")
    if bare.isprintable():  # as most text is; the rest takes long
        return text
    plain = ESCAPE.sub("", text)
    return "".join(one for one in plain if one in keep or unicodedata.category(one) not in INVISIBLE)


def alike(sentences: Iterable[tuple[str, str]], kinds: Iterable[object] = ()) -> list[str]:
    """Sentences (place, text). Those of one kind become one, with a count; without kinds, those of one shape."""
    groups: dict[object, list[tuple[str, str]]] = {}
    for (where, what), kind in zip_longest(sentences, kinds):
        groups.setdefault(shape(what) if kind is None else kind, []).append((where, what))
    many = {key: f" (and {len(same) - 1} more like this)" if len(same) > 1 else "" for key, same in groups.items()}
    return [f"{same[0][0]}: {same[0][1]}{many[key]}" for key, same in groups.items()]


def printable(text: str) -> str:
    """`text` on one line, with escapes for characters that control a terminal or the reading direction."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


LONGEST = 60
"""characters of a session's name; screen allows 80, and the run and the attempt are added"""
_DIGEST = 8


def clean(name: str) -> str:
    """`name` in `[A-Za-z0-9_-]`, without a leading dash. Raises UserError if nothing is left."""
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    cleaned = re.sub(r"[^A-Za-z0-9_-]+", "-", plain).strip("-")
    if not cleaned:
        raise UserError(
            f"the name {name!r} has no letter or digit that a file name can hold",
            "use a name with at least one of A-Z, a-z, 0-9, _",
        )
    return cleaned


def natural(name: str) -> list[tuple[int, str]]:
    """Sorts step_9 before step_10."""
    return [(place % 2 * len(part), part) for place, part in enumerate(re.split(r"0*(\d+)", name))]


SESSION_NAME = "{environment}_{policy}"


def session_name(environment: str, policy: str, pattern: str = SESSION_NAME) -> str:
    """The pattern of a grid's `session_name`, with both names made clean."""
    name = re.sub(
        "{(environment|policy)}", lambda match: clean(environment if match[1] == "environment" else policy), pattern
    )
    return shortened(name, f"{environment}\0{policy}")


def shortened(cleaned: str, whole: str = "") -> str:
    """`cleaned` in at most 60 characters; a longer one is cut and ends with a digest of `whole`, else of itself."""
    if len(cleaned) <= LONGEST:
        return cleaned
    import hashlib  # slow to import, and few names are so long

    digest = hashlib.sha256((whole or cleaned).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{cleaned[: LONGEST - _DIGEST - 1]}-{digest}"
