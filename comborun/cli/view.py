"""combo view: a live page about a run on 127.0.0.1, or the same page as static files."""

from __future__ import annotations

import errno
import getpass
import os
import shlex
import socket
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from comborun.answers import grids
from comborun.api.joint_look import watched
from comborun.cli.options import interval_option, json_lines_option, of_run
from comborun.cli.terminal import show_record, show_rows, working
from comborun.errors import UserError

if TYPE_CHECKING:
    from comborun.api.named import Target
    from comborun.monitor.view.access import Access

_FIRST_PORT, _PORTS = 8420, 40


@click.command()
@of_run
@click.option("--port", type=click.IntRange(1, 65535), metavar="P", help="The port; by default the first free one.")
@click.option("--act", is_flag=True, help="The page may also give orders: retry, stop, resume, slots.")
@click.option("--no-browser", is_flag=True, help="Open no browser.")
@click.option(
    "--bundle",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the page as static files into an empty folder, and end.",
)
@interval_option
@json_lines_option
def view(target: Target, port: int | None, bundle: Path | None, interval: float | None, **how: bool) -> int:
    """Show a run on a live page in a browser: the grid, each cell, videos, the host, the report so far.

    The page is on 127.0.0.1 and needs the key in its address. Ctrl-C ends the page; the sessions go on. A copy as
    static files holds no logs, and no names of users and hosts.

    \b
    combo view                           the newest run
    combo view 4_env_test --host h100    a run on another host
    combo view --act                     with buttons: retry, stop, resume, slots
    combo view --bundle shared           as static files
    """
    from comborun.cli.orders import every_host
    from comborun.monitor.view import pages
    from comborun.monitor.view.access import keep_access
    from comborun.monitor.view.feed import Feed
    from comborun.monitor.view.server import Server, serve
    from comborun.monitor.watch import Settings

    if bundle:
        _write(target, bundle, as_json=how["as_json"])
        return 0
    source = watched(target, moves=True)
    listening, access = _listen(target.run, port)
    keep_access(target.run, access)
    feed = Feed(source, Settings(interval or source.view.plan.poll))
    site = pages.Site(access.base, acts=how["act"], options=target.options)
    server = Server(feed, access, site, every_host)
    try:
        serve(server.app(), listening, lambda: _tell(access, browser=not how["no_browser"], as_json=how["as_json"]))
    finally:
        server.close()
        listening.close()
    click.echo("\nThe page has ended; the sessions go on.", err=True)
    return 0


def _write(target: Target, folder: Path, *, as_json: bool) -> None:
    from comborun.monitor.view.bundle import write_bundle

    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty", "name a folder that does not exist yet")
    with working("writing the page"):
        copied, skipped = write_bundle(watched(target), folder)
    if as_json:
        show_record(grids.Bundle(str(folder), copied, skipped))
        return
    click.echo(f"{folder / 'index.html'}")
    show_rows({"videos": f"{copied} copied" + (f", {skipped} left out" if skipped else "")})


def _listen(run: str, port: int | None) -> tuple[socket.socket, Access]:
    """A socket of 127.0.0.1, and the key: that of the last page about this run if its port is free."""
    from comborun.monitor.view.access import kept_access, new_access

    kept = kept_access(run)
    if kept and port in (None, kept.port) and (listening := _bound(kept.port)):
        return listening, kept
    for candidate in [port] if port else [*range(_FIRST_PORT, _FIRST_PORT + _PORTS), 0]:
        if listening := _bound(candidate):
            return listening, new_access(listening.getsockname()[1])
    raise UserError(f"port {port} is in use", "another --port, or none for the first free one")


def _bound(port: int) -> socket.socket | None:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(64)
    except OSError as error:
        listening.close()
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        return None
    return listening


def _tell(access: Access, *, browser: bool, as_json: bool) -> None:
    tunnel = tunnel_command(os.environ.get("SSH_CONNECTION", ""), access.port)
    if as_json:
        show_record(grids.Page(access.address, tunnel or None))
        return
    click.echo(f"The page is at {click.style(access.address, bold=True)}")
    if tunnel:
        click.echo("On your own machine, give this first, and open the address there:")
        click.echo(f"  {tunnel}")
    elif browser and _has_browser():
        _open(access.address)
    click.echo("Ctrl-C ends the page; the sessions go on.", err=True)


def tunnel_command(connection: str, port: int) -> str:
    """The command that brings the page to the machine from which the user has logged in; empty without ssh."""
    words = connection.split()
    if len(words) != 4 or "UNKNOWN" in words:  # sshd says that where the connection is no socket
        return ""
    user, (_, _, host, ssh_port) = getpass.getuser(), words
    there = shlex.quote(f"{user}@{host}")
    return f"ssh -N -L {port}:127.0.0.1:{port}" + (f" -p {ssh_port}" if ssh_port != "22" else "") + f" {there}"


def _has_browser() -> bool:
    shown = sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return shown and sys.stdout.isatty()


def _open(address: str) -> None:
    """Through a private file: everybody on this machine can read the arguments of a browser."""
    import atexit
    import webbrowser

    descriptor, name = tempfile.mkstemp(prefix="combo-view-", suffix=".html")
    with os.fdopen(descriptor, "w") as stream:
        stream.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={address}"><title>combo view</title>')
    atexit.register(Path(name).unlink, missing_ok=True)
    webbrowser.open(Path(name).as_uri())
