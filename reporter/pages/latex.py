"""report.tex: the tables for a paper, with booktabs, and the methods below them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun import __version__
from comborun.reporter.pages import tables
from comborun.reporter.pages.tables import Strong
from comborun.reporter.pages.words import methods
from comborun.reporter.text import NOTHING, of
from comborun.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.reporter.counting.aggregates import MacroMean
    from comborun.reporter.pages.tables import Table
    from comborun.reporter.summary import Axes, ComboSummary, Summary

COUNTED = 3
"""columns from which on k/n has no room"""
MOST_ROWS = 60
FITTED = r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%"

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
    "†": r"\textdagger{}",
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
    yield r"% Needs \usepackage{booktabs,textcomp,graphicx}; for names outside of Latin scripts xelatex or lualatex."
    axes = summary.axes
    if axes is None:
        yield "% No combo is counted in episodes: there is no table of success rates."
        return
    if len(axes.rows) > MOST_ROWS:
        yield f"% {len(axes.rows)} rows are too many for a table on paper: summary.csv has the success rates."
        return
    style = _Style(len(axes.columns))
    kind = "table" if style.narrow else "table*"
    yield from (f"\\begin{{{kind}}}", r"\centering", rf"\{style.size}\setlength{{\tabcolsep}}{{{style.gap}pt}}")
    yield r"\renewcommand{\arraystretch}{1.25}"  # limits stand above and below the line
    yield from _table(summary, axes, style)
    yield f"\\caption{{{_caption(summary, style)}}}"
    yield f"\\end{{{kind}}}"
    for table in (tables.graded(summary.comparisons.graded), tables.kinds_compared(summary.kinds)):
        yield from _compared(table) if table else ()
    yield from ("", r"\paragraph{Evaluation.}", escape(methods(summary)))


def _compared(table: Table) -> Iterator[str]:
    """Any table, as wide as its paper at most."""
    yield from ("", r"\begin{table*}", r"\centering", r"\footnotesize\setlength{\tabcolsep}{4pt}", FITTED)
    yield rf"\begin{{tabular}}{{{''.join(side[0] for _, side in table.columns)}}}"
    yield from (r"\toprule", _row([escape(head) for head, _ in table.columns]), r"\midrule")
    for row in table.rows:
        yield _row([rf"\textbf{{{escape(cell)}}}" if isinstance(cell, Strong) else escape(cell) for cell in row])
    yield from (r"\bottomrule", r"\end{tabular}}")
    words = " ".join(filter(None, (f"{table.title}.", table.note, table.more)))
    yield from (rf"\caption{{{escape(words)}}}", r"\end{table*}")


@dataclass(frozen=True)
class _Style:
    """What lets so many columns stand within a column of the paper, or within both."""

    columns: int

    @property
    def narrow(self) -> bool:
        return self.columns <= 2

    @property
    def crowded(self) -> bool:
        return self.columns > 6

    @property
    def size(self) -> str:
        return "scriptsize" if self.crowded else "footnotesize" if self.columns > 3 else "small"

    @property
    def gap(self) -> int:
        return 2 if self.crowded else 4

    def head(self, name: str) -> str:
        return rf"\rotatebox{{90}}{{{escape(name)}}}" if self.crowded else escape(name)

    def rate(self, share: float, interval: tuple[float, float]) -> str:
        """With the distances of its limits: `$73.0^{+8.4}_{-9.8}$`."""
        low, high = share - interval[0], interval[1] - share
        decimals = 0 if self.crowded else 1
        step = 10.0**-decimals
        near = (
            100 * share if share in {0, 1} else min(max(100 * share, step), 100 - step)
        )  # only 0 and 1 are rounded to
        shown = (f"{part:.{decimals}f}" for part in (near, 100 * high, 100 * low))
        return "${}^{{+{}}}_{{-{}}}$".format(*shown)


def _table(summary: Summary, axes: Axes, style: _Style) -> Iterator[str]:
    combos = {combo.key: combo for combo in summary.combos}
    means = {mean.policy: mean for mean in summary.macro_means}
    across = axes.policies_across
    last = ["mean"] if means and not across else []
    yield f"\\begin{{tabular}}{{l{'l' * len([*axes.columns, *last])}}}"
    yield r"\toprule"
    yield _row(["", *map(style.head, [*axes.columns, *last])])
    yield r"\midrule"
    for row in axes.rows:
        cells = [_cell(combos.get(axes.combo(column, row)), summary, style) for column in axes.columns]
        yield _row([escape(row), *cells, *(_mean(means.get(row), style) for _ in last)])
    if means and across:
        yield r"\midrule"
        yield _row(["mean", *(_mean(means.get(policy), style) for policy in axes.columns)])
    yield from (r"\bottomrule", r"\end{tabular}")


def _mean(mean: MacroMean | None, style: _Style) -> str:
    """Over environments, with equal weights; none where one is missing."""
    if mean is None or mean.mean is None or mean.interval is None:
        return escape(NOTHING)
    return style.rate(mean.mean, mean.interval)


def _row(cells: list[str]) -> str:
    row = " & ".join(cells) + r" \\"
    # What stands before a row, \midrule or \\, would take these for its own argument, over blanks and line ends.
    return f"{{}}{row}" if row.lstrip().startswith(("[", "*")) else row


def _cell(combo: ComboSummary | None, summary: Summary, style: _Style) -> str:
    """`$73.0^{+8.4}_{-9.8}$ (73/100)` with its letters; bold where it is better than every other policy."""
    if combo is None or combo.rate is None or combo.rate.rate is None or combo.rate.interval is None:
        return escape(NOTHING)
    text = style.rate(combo.rate.rate, combo.rate.interval)
    if uniquely_best(combo, summary):
        text = rf"\boldmath{text}\unboldmath{{}}"
    counted = "" if style.columns > COUNTED else f" ({escape(of(combo.rate))})"
    word = summary.comparisons.letters_of(*combo.key)
    return text + counted + (f"\\textsuperscript{{{escape(word)}}}" if word else "")


def uniquely_best(combo: ComboSummary, summary: Summary) -> bool:
    """Whether its letter is the first and no other policy of its environment has it."""
    for group in summary.comparisons.environments:
        if group.environment == combo.environment and len(group.letters) > 1:
            (best, best_letters), *others = group.letters
            shared = any(set(best_letters) & set(other) for _, other in others)
            return best == combo.policy and not shared
    return False


def _caption(summary: Summary, style: _Style) -> str:
    sizes = sorted({combo.rate.n for combo in summary.combos if combo.rate and combo.rate.n})
    words = "Success rates in per cent with the distances to their 95 % limits (Clopper-Pearson)"
    if style.columns <= COUNTED:
        words += " and successes of completed episodes."
    elif sizes:
        words += f"; {' to '.join(dict.fromkeys(map(str, (sizes[0], sizes[-1]))))} completed episodes in each cell."
    if any(group.letters for group in summary.comparisons.environments):
        words += (
            f" Policies of an environment that share a letter are not told apart (Holm over {summary.comparisons.size}"
            " comparisons); bold: better than every other policy."
        )
    if summary.macro_means:
        words += " Means weigh environments equally."
    return escape(words)
