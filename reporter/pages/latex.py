"""report.tex: the tables for a paper, with booktabs, and the methods below them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from comborun import __version__
from comborun.reporter.comparing.claims_besides import not_shown, not_worse
from comborun.reporter.counting.combo import ComboSummary, MacroMean
from comborun.reporter.pages import comparison_tables, policy_tables
from comborun.reporter.pages.answer import answer
from comborun.reporter.pages.text_table import LEANS, Plot, Strong, TextTable
from comborun.reporter.pages.words import methods
from comborun.reporter.standing import standing_of
from comborun.reporter.summary import GridAxes, Summary
from comborun.reporter.text import NOTHING, of, with_interval, within
from comborun.text import printable, several

COUNTED = 3
"""most columns with room for k/n"""
CROWDED = 6
"""most columns with room for decimals"""
MOST_ROWS = 60
NARROW = 5
"""most columns of a table in one column of a page"""
FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"

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
    if told := answer(summary):
        yield escape(told)
    standing = standing_of(summary)
    for shown in filter(None, (policy_tables.ranking(standing), policy_tables.matrix(standing))):
        kind = "table" if len(shown.columns) <= NARROW else "table*"
        yield from (*_fitted(replace(shown, rows=shown.rows[:MOST_ROWS]), kind), "")
    axes = summary.axes
    if axes is None:
        yield "% No combo is counted in episodes: there is no table of success rates."
        return
    if summary.by_numbers and not summary.metric:
        yield "% Episodes have several numbers and no verdict: summary.csv has their means."
        return
    if len(axes.rows) > MOST_ROWS:
        yield f"% {len(axes.rows)} rows are too many for a table on paper: summary.csv has the success rates."
        return
    columns = len(axes.columns)
    kind = "table" if columns <= 2 else "table*"
    size = "scriptsize" if columns > CROWDED else "footnotesize" if columns > COUNTED else "small"
    gap = 2 if columns > CROWDED else 4
    yield from (f"\\begin{{{kind}}}", r"\centering", rf"\{size}\setlength{{\tabcolsep}}{{{gap}pt}}")
    yield r"\renewcommand{\arraystretch}{1.25}"  # limits stand above and below the line
    yield from _table(summary, axes)
    yield f"\\caption{{{_caption(summary, columns)}}}"
    yield f"\\end{{{kind}}}"
    for table in (
        comparison_tables.graded(summary.comparisons.graded),
        comparison_tables.mean_differences(summary.comparisons.mean_differences if summary.by_numbers else ()),
        comparison_tables.kinds_compared(summary.kinds),
        comparison_tables.losses(summary.losses),
        comparison_tables.factors(summary.factors),
    ):
        yield from _fitted(table, "table*") if table else ()
    if margins := [*not_worse(summary.comparisons), *not_shown(summary.comparisons)]:
        yield from ("", r"\paragraph{Margin.}", *map(escape, margins))
    yield from ("", r"\paragraph{Evaluation.}", escape(methods(summary)))


def _fitted(table: TextTable, kind: str) -> Iterator[str]:
    """A plot in text as rules."""
    yield from ("", rf"\begin{{{kind}}}", r"\centering", r"\footnotesize\setlength{\tabcolsep}{4pt}", FITTED)
    rows = [[_forest(cell) if isinstance(cell, Plot) else _bold(cell) for cell in row] for row in table.rows]
    sides = "".join(side[0] for _, side in table.columns)
    yield from _tabular(sides, [escape(head) for head, _ in table.columns], rows, end="}")
    words = " ".join(filter(None, (f"{table.title}.", table.note, table.more)))
    yield from (rf"\caption{{{escape(words)}}}", rf"\end{{{kind}}}")


def _forest(plot: str) -> str:
    """A thin rule for the interval and a thick one for its value, a millimetre for each sign of the plot."""
    if not plot:
        return ""
    start, middle, end = len(plot) - len(plot.lstrip("·")), plot.index("●"), len(plot.rstrip("·"))
    thin = r"\rule[.55ex]{%gmm}{.4pt}"
    return (
        rf"\makebox[{len(plot)}mm][l]{{\hspace*{{{start}mm}}{thin % (middle - start)}\rule[.3ex]{{1mm}}{{.6ex}}"
        rf"{thin % (end - middle - 1)}}}"
    )


def _bold(cell: str) -> str:
    return rf"\textbf{{{escape(cell)}}}" if isinstance(cell, Strong) else escape(cell)


def _rate(share: float, interval: tuple[float, float], *, crowded: bool) -> str:
    """With the distances of its limits: `$73.0^{+8.4}_{-9.8}$`."""
    low, high = share - interval[0], interval[1] - share
    decimals = 0 if crowded else 1
    step = 10.0**-decimals
    near = 100 * share
    if share not in {0, 1}:  # only these are rounded to
        near = min(max(near, step), 100 - step)
    shown = (f"{part:.{decimals}f}" for part in (near, 100 * high, 100 * low))
    return "${}^{{+{}}}_{{-{}}}$".format(*shown)


def _table(summary: Summary, axes: GridAxes) -> Iterator[str]:
    combos = {combo.key: combo for combo in summary.combos}
    means = {} if summary.by_numbers else {mean.policy: mean for mean in summary.macro_means}
    across, crowded = axes.policies_across, len(axes.columns) > CROWDED
    head = r"\rotatebox{90}{%s}" if crowded else "%s"
    last = ["mean"] if means and not across else []
    rows = [
        [
            escape(row),
            *(_cell(combos.get(axes.combo(column, row)), summary, len(axes.columns)) for column in axes.columns),
            *(_mean(means.get(row), crowded=crowded) for _ in last),
        ]
        for row in axes.rows
    ]
    foot = ["mean", *(_mean(means.get(policy), crowded=crowded) for policy in axes.columns)] if means and across else []
    heads = ["", *(head % escape(name) for name in [*axes.columns, *last])]
    yield from _tabular("l" * len(heads), heads, rows, foot)


def _tabular(
    sides: str, heads: Sequence[str], rows: Iterable[Sequence[str]], foot: Sequence[str] = (), end: str = ""
) -> Iterator[str]:
    yield from (f"\\begin{{tabular}}{{{sides}}}", r"\toprule", _row(heads), r"\midrule")
    yield from map(_row, rows)
    if foot:
        yield from (r"\midrule", _row(foot))
    yield from (r"\bottomrule", rf"\end{{tabular}}{end}")


def _mean(mean: MacroMean | None, *, crowded: bool) -> str:
    if mean is None or mean.mean is None or mean.interval is None:
        return escape(NOTHING)
    return _rate(mean.mean, mean.interval, crowded=crowded) + (r"\textdagger{}" if mean.early else "")


def _row(cells: Sequence[str]) -> str:
    row = " & ".join(cells) + r" \\"
    # LaTeX would take these for an argument of the \midrule or \\ before the row, across blanks and line ends.
    return f"{{}}{row}" if row.lstrip().startswith(("[", "*")) else row


def _cell(combo: ComboSummary | None, summary: Summary, columns: int) -> str:
    """`$73.0^{+8.4}_{-9.8}$ (73/100)` with its letters; bold if it is better than every other policy."""
    if combo and summary.by_numbers:
        return _measured(combo, summary)
    if combo is None or combo.rate is None or combo.rate.rate is None or combo.rate.interval is None:
        return escape(NOTHING)
    text = _rate(combo.rate.rate, combo.rate.interval, crowded=columns > CROWDED)
    if uniquely_best(combo, summary):
        text = rf"\boldmath{text}\unboldmath{{}}"
    starts = f" of {several(combo.rate.starts, 'start')}" if combo.rate.starts else ""
    starts += within(combo.rate.runs)
    counted = "" if columns > COUNTED else f" ({escape(of(combo.rate))}{starts})"
    dagger = r"\textsuperscript{\textdagger{}}" if combo.leans else ""
    return text + dagger + counted + _letters(combo)


def _letters(combo: ComboSummary) -> str:
    return f"\\textsuperscript{{{escape(combo.letters)}}}" if combo.letters else ""


def _measured(combo: ComboSummary, summary: Summary) -> str:
    """The mean of the metric with its interval and its letters."""
    found = combo.metrics_by_name.get(summary.metric.name) if summary.metric else None
    if found is None:
        return escape(NOTHING)
    return escape(with_interval(found.mean, found.interval, found.runs)) + _letters(combo)


def uniquely_best(combo: ComboSummary, summary: Summary) -> bool:
    """Whether it has the first letter of its environment, and no other policy has it."""
    for group in summary.comparisons.environments:
        if group.environment == combo.environment and len(group.letters) > 1:
            (best, best_letters), *others = group.letters
            shared = any(set(best_letters) & set(other) for _, other in others)
            return best == combo.policy and not shared
    return False


def _caption(summary: Summary, columns: int) -> str:
    if summary.by_numbers:
        what = f"Means of {summary.metric.name} with their 95 % intervals (t)." if summary.metric else ""
        lettered = " Policies of an environment that share a letter are not told apart."
        return escape(f"{what}{lettered if any(combo.letters for combo in summary.combos) else ''}")
    sizes = sorted({combo.rate.n for combo in summary.combos if combo.rate and combo.rate.n})
    words = "Success rates in per cent with the distances to their 95 % limits (Clopper-Pearson)"
    if columns <= COUNTED:
        words += " and successes of completed episodes."
    elif sizes:
        words += f"; {' to '.join(dict.fromkeys(map(str, (sizes[0], sizes[-1]))))} completed episodes in each cell."
    if any(group.letters for group in summary.comparisons.environments):
        words += (
            f" Policies of an environment that share a letter are not told apart (Holm over {summary.comparisons.size}"
            " comparisons); bold: better than every other policy."
        )
    if any(combo.rate and combo.rate.starts for combo in summary.combos):
        words += " Where starts repeat, limits count each start once."
    if any(combo.leans for combo in summary.combos):
        words += f" {LEANS}"
    if summary.macro_means:
        words += " Means weigh environments equally."
    return escape(words)
