"""Extended regular expressions, as `grep -E` on the host reads them: what they are not is refused before the launch.

grep takes most of what Python's syntax has beyond them for something else, and would not complain.
"""

from __future__ import annotations

import re

from comborun.errors import UserError

_TOKEN = re.compile(
    r"""(?P<bracket>\[\^?\]?(?:\[(?P<kind>[:.=]).*?(?P=kind)\]|(?!\[[:.=])[^]])*\])
    |(?P<escape>\\.?)
    |(?P<extension>\(\?(?:P?<[A-Za-z_]\w*>|<?[=!]|.?))
    |(?P<interval>\{[^}]*\}?)
    |(?P<repeat>[*+?])
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_WIDE_REPEATED = re.compile(r"([^\x00-\x7f])([*+?{])")
_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\s", "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_SPECIAL = set(".[]\\()*+?{}|^$")
_GNU = set("wWsSbB<>")
"""escapes that POSIX has not, and that glibc and GNU grep have"""
_INSTEAD = {"d": "[0-9]", "D": "[^0-9]", "t": "[[:blank:]]", "A": "^", "Z": "$", "z": "$", "h": "[[:blank:]]"}
_WITHIN = {"d": "0-9", "s": "[:space:]", "w": "[:alnum:]_", "t": "[:blank:]", "n": ""}
_MOST_REPEATS = 255


def check_extended(text: str) -> str:
    """The pattern itself. Raises UserError for what `grep -E` reads otherwise, or not at all, and for one that finds
    an empty line: it would find every line.
    """
    if wide := _WIDE_REPEATED.search(text):
        hint = f"put it in parentheses: ({wide[1]}){wide[2]}"
        raise _refused(text, wide.group(), "repeats a part of a letter only: the host may compare bytes", hint)
    meaning: list[str] = []
    repeatable = repeated = False
    for match in _TOKEN.finditer(text):
        piece = match.group()
        if repeats := match.lastgroup in {"interval", "repeat"}:
            _check_repeat(text, piece, repeatable=repeatable, repeated=repeated)
        meaning.append(_meaning(text, match))
        repeatable = repeats or piece not in {"(", "|", "^"}
        repeated = repeats
    if _compiled(text, "".join(meaning)).search(""):
        raise UserError(f"`{text}` finds every line, even an empty one", "name a word that must be there")
    return text


def _meaning(text: str, match: re.Match[str]) -> str:
    """What a piece is for Python; raises UserError when it is nothing for grep."""
    piece = match.group()
    match match.lastgroup:
        case "bracket" | "kind":
            return _bracket(text, piece)
        case "escape":
            return _escape(text, piece)
        case "extension":
            raise _refused(text, piece, *_extension(piece))
        case _ if piece == "[":
            raise _refused(text, piece, "is never closed", "write \\[ for the character itself")
        case _:
            return piece


def _check_repeat(text: str, piece: str, *, repeatable: bool, repeated: bool) -> None:
    if piece.startswith("{"):
        bounds = re.fullmatch(r"\{([0-9]{0,3})(,?)([0-9]{0,3})\}", piece)
        low, high = (int(bounds[1] or 0), int(bounds[3] or bounds[1] or 0)) if bounds else (1, 0)
        if not bounds or not re.search("[0-9]", piece) or (bounds[3] and low > high) or max(low, high) > _MOST_REPEATS:
            raise _refused(text, piece, "is no number of repeats", "such as {2,5}; write \\{ for the character itself")
    if not repeatable:
        raise _refused(text, piece, "has nothing to repeat", f"write \\{piece[0]} for the character itself")
    if repeated:
        message = "repeats what is repeated already; there is no lazy form" if piece == "?" else "repeats twice"
        raise _refused(text, piece, message, "remove it: whether a line is found does not depend on it")


def _bracket(text: str, piece: str) -> str:
    inner = piece[2:-1] if piece.startswith("[^") else piece[1:-1]
    if not inner.isascii():
        raise _refused(text, piece, "has a letter that is several bytes, which the host may compare", "write (ä|ö)")
    if re.fullmatch(r":.*:", inner):
        raise _refused(text, piece, "stands without brackets around it", f"write [{piece}]")
    for name in re.findall(r"\[:(.*?):\]", inner):
        if name not in _CLASSES:
            raise _refused(text, f"[:{name}:]", "is no class of characters", f"there are {', '.join(_CLASSES)}")
    if re.search(r"\[[.=]", inner):
        raise _refused(text, piece, "holds a collating element", "name the characters themselves")
    if inner.endswith("\\") and not inner.endswith("\\\\"):
        raise _refused(text, piece, "ends at its first ]: within brackets \\ escapes nothing", "put ] first: []a-z]")
    if escape := re.search(r"\\([A-Za-z0-9])", inner):
        written = _WITHIN.get(escape[1])
        hint = f"write {written}" if written else "name the characters themselves"
        raise _refused(text, escape.group(), "is two characters within brackets", hint)
    plain = re.sub(r"\[:(.*?):\]|([\\\[\]&~|])", lambda part: _CLASSES.get(part[1] or "") or f"\\{part[2]}", inner)
    return f"[{'^' if piece.startswith('[^') else ''}{plain}]"


def _escape(text: str, piece: str) -> str:
    letter = piece[1:]
    if not letter:
        raise _refused(text, piece, "escapes nothing at the end", "write \\\\ for a backslash")
    if letter in _SPECIAL:
        return piece
    if letter in _GNU:
        return r"\b" if letter in "<>" else piece
    if letter.isdigit():
        raise _refused(text, piece, "refers back to a group, which not every grep can", "write the text out")
    if letter.isalpha():
        instead = _INSTEAD.get(letter)
        hint = f"write {instead}" if instead else "only . [ ] \\ ( ) * + ? { } | ^ $ are escaped"
        raise _refused(text, piece, "means nothing in an extended regular expression", hint)
    raise _refused(text, piece, "needs no backslash, and some greps give it another meaning", f"write {letter}")


def _extension(piece: str) -> tuple[str, str]:
    if piece in {"(?=", "(?!", "(?<=", "(?<!"}:
        return "looks around, which grep -E can't", "an `ignore` pattern takes out lines that should not count"
    if piece == "(?:":
        return "is Python's; every group is like that here", "write ("
    if "<" in piece:
        return "names a group, which grep -E can't", "write ("
    return "is Python's", "write both cases, such as [Oo]ut of memory"


def _refused(text: str, piece: str, message: str, hint: str) -> UserError:
    return UserError(f"`{text}`: {piece} {message}", hint)


def _compiled(text: str, meaning: str) -> re.Pattern[str]:
    try:
        return re.compile(meaning)
    except (re.error, RecursionError, OverflowError) as error:
        hint = "the syntax is that of grep -E; write \\( for the character itself"
        raise UserError(f"`{text}` is no extended regular expression: {error}", hint) from None
