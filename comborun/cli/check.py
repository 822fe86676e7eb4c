"""combo init, presets, docs, schema and check: a grid file before anything runs, and the known evaluation programs."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from comborun.answers import grids
from comborun.cli.options import grid_argument, json_option, offers
from comborun.cli.proposals import show_videos, show_why
from comborun.cli.terminal import program, show_json, show_rows, show_text, warn, wrapped
from comborun.errors import UserError
from comborun.grid import Preset, find_preset, known_presets, preset_starter, schema_text, starter_grid
from comborun.grid.presets import SHIPPED
from comborun.model.work import combo_of
from comborun.reference import example_grid, key_reference, pages, shared
from comborun.rules.names import RUN, AttemptLayout
from comborun.text import clean, several
from comborun.words.rows import why_not_counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from comborun.api.named import GridChoice
    from comborun.grid import Grid
    from comborun.model.plan import Session
    from comborun.rules.facts import Fact
    from comborun.rules.results.counts import Counts
    from comborun.rules.results.fields import ResultRules


_SKILL = (
    "Run, watch, mend and report policy x environment evaluation grids of robot policies with the program combo. Use it"
    " for grid.yaml files of comborun, their runs on GPU hosts, and their reports."
)


@click.command()
@click.option("--name", default="my_grid", show_default=True, metavar="NAME", help="The grid's name.")
@click.option(
    "--preset",
    metavar="P",
    shell_complete=offers("presets"),
    help="The evaluation program; `combo presets` lists them.",
)
@click.option("--example", type=click.Path(path_type=Path), metavar="DIR", help="Copy the example into a new folder.")
@click.option(
    "--skill",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the page for agents into a folder, as a skill.",
)
@json_option
def init(name: str, preset: str | None, example: Path | None, skill: Path | None, as_json: bool) -> None:
    """Write a commented starter grid to standard output.

    \b
    combo init --name push_cube > grid.yaml
    combo init --preset openpi > grid.yaml
    combo init --example walker     a walking robot in MuJoCo
    combo init --skill skills       skills/comborun/SKILL.md
    """
    if skill:
        show_text(_skill(skill), as_json=as_json)
        return
    if example:
        if example.exists():
            raise UserError(f"{example} exists already", "name a new folder")
        shutil.copytree(shared("example"), example, ignore=shutil.ignore_patterns("__pycache__"))
        grid = example / "grid.yaml"
        grid.write_text(example_grid(grid.read_text("utf-8")), "utf-8")
        if as_json:
            show_json(grids.Example(str(example), str(grid)))
            return
        click.echo(f"{example}: the example; `comborun[example]` has its simulator\nNext: {program()} run {grid}")
        return
    starter = preset_starter(find_preset(preset), preset, name) if preset else starter_grid(name)
    show_text(grids.Text(f"{name}.yaml", starter), as_json=as_json)


def _skill(folder: Path) -> grids.Text:
    """Write the page for agents with the heading that a skill has."""
    path = folder / "comborun" / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"---\nname: comborun\ndescription: {_SKILL}\n---\n\n{pages()['agents'].read_text('utf-8')}", "utf-8"
    )
    return grids.Text(str(path), f"{path}: a skill for agents\n")


@click.command()
@click.argument("topic", required=False, metavar="[KEY or PAGE]", shell_complete=offers("topics"))
@json_option
def docs(topic: str | None, as_json: bool) -> None:
    """Print the reference of a key of a grid, or a page of the documentation.

    \b
    combo docs limits.parallel
    combo docs shards
    combo docs report            a page; without a name, the list of pages
    """
    found = pages()
    if topic is None and as_json:
        show_json(grids.Pages(tuple(found)))
        return
    if topic is None:
        click.echo(f"Pages: {', '.join(found)}\nKeys of a grid, such as: {program()} docs limits.parallel")
        return
    grid = found["grid"].read_text("utf-8")
    text = found[topic].read_text("utf-8") if topic in found else key_reference(grid, topic)
    if as_json:
        show_json(grids.Text(topic, text))
    else:
        click.echo_via_pager(text)


@click.command()
@click.option("--answers", is_flag=True, help="The schema of what the commands answer with --json.")
@click.option("--json", is_flag=True, help="No difference: a schema is JSON.")
def schema(answers: bool, json: bool) -> None:  # noqa: ARG001
    """Write the JSON Schema of a grid file, for editors; or that of all answers, for programs.

    \b
    combo schema > grid.schema.json
    combo schema --answers > answers.schema.json
    """
    if answers:
        from comborun.answers.schema import answers_schema  # it loads every type

        click.echo(answers_schema(), nl=False)
    else:
        click.echo(schema_text(), nl=False)


@click.command()
@grid_argument
@json_option
def check(grid: GridChoice, as_json: bool) -> None:
    """Find every mistake in a grid file at once, and count the last results of its try or run on this machine.

    \b
    combo check grid.yaml
    """
    checked = grid.read()
    latest = _latest_counts(checked)
    if as_json:
        counted = None
        if latest:
            session, counts, filmed = latest
            facts = (*counts.facts, *filter(None, [filmed]))
            counted = grids.LatestCounts(session.name, counts.records, why_not_counted(counts.facts), facts)
        show_json(grids.Checked(checked.name, len(checked.combos), counted, tuple(map(str, checked.warnings))))
        return
    warn(*map(str, checked.warnings))
    found = f" for each file that {checked.policy_glob} finds" if checked.policy_glob else ""
    click.echo(f"{checked.name}: {several(len(checked.combos), 'combo')}{found}, no mistakes")
    if checked.hosts:
        hosts = ", ".join(one.host for one in checked.hosts)
        click.echo(f"  shared by {hosts}: `{program()} plan {checked.path}` shows who would run what")
    if latest:
        session, counts, filmed = latest
        planned = f" of {session.count}" if session.count else ""
        click.echo(f"  the last results of {session.name}: {counts.records}{planned} episodes count by this grid")
        show_why(counts.facts, checked.path)
        show_videos(filmed, checked.path)


def _latest_counts(grid: Grid) -> tuple[Session, Counts, Fact | None] | None:
    """A session of the grid's last try or run, counted by the present grid, and what keeps its videos from being shown;
    None if none has ended.
    """
    from comborun.grid.combos import names_of
    from comborun.rules.results.counts import where_it_ran

    combos = {combo.key: combo for combo in grid.combos}
    for session, at in _ended(grid):
        combo = combos.get(combo_of(session))
        if not combo or combo.settings.unit != "episode":
            continue
        rules = combo.rules
        if rules.has_records:
            counts, filmed = _counts(at, session, rules)
            counts.facts = where_it_ran(counts.facts, names_of(grid))
            return session, counts, filmed
    return None


def _ended(grid: Grid) -> Iterator[tuple[Session, AttemptLayout]]:
    from comborun.model.plan import Plan

    root, name = Path(grid.root).expanduser(), clean(grid.name)
    plans = [*root.glob(f".try/{name}_try-*T*Z-*/{RUN.plan(1)}"), *root.glob(f"{name}-*T*Z-*/{RUN.plan(1)}")]
    newest = max(plans, key=lambda path: path.parent.name.rsplit("-", 2)[1:], default=None)
    try:
        sessions = Plan.from_json(newest.read_text("utf-8")).sessions if newest else ()
    except (OSError, ValueError):
        return  # another version made it, or it was removed
    for session in sessions:
        at = AttemptLayout(f"{newest and newest.parent}/{RUN.attempt(session.name, 1).directory}")
        if Path(at.end).exists():
            yield session, at


def _counts(at: AttemptLayout, session: Session, rules: ResultRules) -> tuple[Counts, Fact | None]:
    """The counts as the session's host would count by these rules, and what it would say of videos."""
    from comborun.rules import globs
    from comborun.rules.results import videos
    from comborun.rules.results.fields import Identity
    from comborun.rules.results.result_files import Folder
    from comborun.rules.results.tally import tally
    from comborun.rules.results.unread import name_unread

    identity = Identity(session.policy, session.environment, rules, session.count)
    folder, span = Folder.of_attempt(at, identity), (session.first, session.count)
    read = folder.read()
    counts = tally(read, identity, span, over=True)
    name_unread(counts, folder, span, at.log)
    there = globs.found(at.output, ["**"])
    return counts, videos.told(there, globs.found(at.output, rules.videos), read.samples)


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def presets(context: click.Context, as_json: bool) -> None:
    """List the evaluation programs that a grid can name as its preset.

    \b
    combo presets
    combo presets show openpi
    """
    if context.invoked_subcommand:
        return
    found = {name: _summary(name) for name in known_presets()}
    if as_json:
        show_json([grids.ListedPreset(name, _own(name), summary) for name, summary in found.items()])
    else:
        show_rows({name: summary + (" (yours)" if _own(name) else "") for name, summary in found.items()})


@presets.command()
@click.argument("preset", shell_complete=offers("presets"))
@json_option
def show(preset: str, as_json: bool) -> None:
    """Explain a preset: what it runs, what it needs, what you must know, and which keys it sets.

    \b
    combo presets show isaaclab-eval
    combo presets show ./mine.yaml
    """
    read = find_preset(preset)
    if as_json:
        about = read.about.model_dump(exclude={"starter"}) | {"shards": read.about.shards.how}
        show_json(grids.ShownPreset(read.name, read.file, read.digest, about))
        return
    click.echo(f"{click.style(read.name, bold=True)}: {read.about.summary}")
    show_rows(dict(_facts(read)))
    for title, lines in (("Before the first session", read.about.needs), ("Notes", read.about.notes)):
        if lines:
            click.echo("\n".join((f"\n{title}:", *(wrapped(line, "- ") for line in lines))))
    click.echo(f"\nWhat it sets ({read.file}):\n\n{textwrap.indent(read.settings_text, '  ')}", nl=False)


def _summary(name: str) -> str:
    try:
        return find_preset(name).about.summary
    except UserError:
        return f"can't be read: combo presets show {name}"


def _own(name: str) -> bool:
    return known_presets()[name].parent != SHIPPED


def _facts(preset: Preset) -> Iterator[tuple[str, str]]:
    about = preset.about
    yield "kind", about.kind
    if about.kind == "evaluation":
        yield "pairs", f"none: {about.unpaired}" if about.unpaired else "if records show how episodes started"
    if about.shards.how:
        yield "shards", about.shards.how
    yield from _attributes("policies", about.attributes.policy, about.defaults.policy)
    yield from _attributes("environments", about.attributes.environment, about.defaults.environment)


def _attributes(axis: str, attributes: Mapping[str, str], defaults: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, what in attributes.items():
        yield f"{axis}: {name}", what + (f"; {defaults[name]} unless given" if name in defaults else "")
