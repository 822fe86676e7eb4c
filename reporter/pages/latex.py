"""report.tex: the table of success rates for a paper, with booktabs, and the methods below it. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from comborun import __version__
from comborun.reporter.pages.words import methods
from comborun.reporter.text import NOTHING, fraction, of
from comborun.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.reporter.summary import Axes, ComboSummary, Summary

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",  # \textquotedbl is unknown to LaTeX's first encoding
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "-": r"{-}",
    "×": r"$\times$",
    "–": r"\textendash{}",
    "−": r"$-$",
    "≤": r"$\leq$",
    "·": r"\textperiodcentered{}",
    "…": r"\ldots{}",
}
_SPECIALS = re.compile("|".join(map(re.escape, _SPECIAL)))


def escape(text: str) -> str:
    """Text from records as LaTeX that prints it: nothing in it is a command, and no ligature joins its signs."""
    return _SPECIALS.sub(lambda sign: _SPECIAL[sign[0]], printable(text))


def latex(summary: Summary) -> str:
    return "\n".join(_lines(summary)) + "\n"


def _lines(summary: Summary) -> Iterator[str]:
    # A name could end a comment's line only with a newline, which printable() spells out.
    yield f"% {printable(summary.run)}: made by comborun {__version__}"
    yield r"% Needs \usepackage{booktabs,textcomp}; for names outside of Latin scripts xelatex or lualatex."
    axes = summary.axes
    if axes is None:
        yield "% No combo is counted in episodes: there is no table of success rates."
        return
    yield from (r"\begin{table}", r"\centering", r"\small")
    yield from _table(summary, axes)
    yield f"\\caption{{{_caption(summary)}}}"
    yield from (r"\end{table}", "", r"\paragraph{Evaluation.}", escape(methods(summary)))


def _table(summary: Summary, axes: Axes) -> Iterator[str]:
    combos = {combo.key: combo for combo in summary.combos}
    yield f"\\begin{{tabular}}{{l{'l' * len(axes.columns)}}}"
    yield r"\toprule"
    yield _row(["", *map(escape, axes.columns)])
    yield r"\midrule"
    for row in axes.rows:
        cells = [_cell(combos.get(axes.combo(column, row)), summary) for column in axes.columns]
        yield _row([escape(row), *cells])
    yield from (r"\bottomrule", r"\end{tabular}")


def _row(cells: list[str]) -> str:
    row = " & ".join(cells) + r" \\"
    # What stands before a row, \midrule or \\, would take these for its own argument, over blanks and line ends.
    return f"{{}}{row}" if row.lstrip().startswith(("[", "*")) else row


def _cell(combo: ComboSummary | None, summary: Summary) -> str:
    """`73.0 [63.2, 81.4] (73/100)` with its letters; bold where it is better than every other policy."""
    if combo is None or combo.rate is None or combo.rate.rate is None or combo.rate.interval is None:
        return escape(NOTHING)
    low, high = map(fraction, combo.rate.interval)
    told = escape(f"{fraction(combo.rate.rate)} [{low}, {high}] ({of(combo.rate)})")
    word = summary.comparisons.letters_of(*combo.key)
    mark = f"\\textsuperscript{{{escape(word)}}}" if word else ""
    return f"\\textbf{{{told}}}{mark}" if uniquely_best(combo, summary) else f"{told}{mark}"


def uniquely_best(combo: ComboSummary, summary: Summary) -> bool:
    """Whether its letter is the first and no other policy of its environment has it."""
    for group in summary.comparisons.environments:
        if group.environment == combo.environment and len(group.letters) > 1:
            (best, best_letters), *others = group.letters
            shared = any(set(best_letters) & set(other) for _, other in others)
            return best == combo.policy and not shared
    return False


def _caption(summary: Summary) -> str:
    words = "Success rates in per cent with 95 % intervals (Clopper-Pearson) and successes of completed episodes."
    if any(group.letters for group in summary.comparisons.environments):
        words += (
            f" Policies of an environment that share a letter are not told apart (Holm over {summary.comparisons.size}"
            " comparisons); bold: better than every other policy."
        )
    return escape(words)
