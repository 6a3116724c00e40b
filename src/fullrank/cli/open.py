"""`fullrank open`: the Job Center in a browser, logged in."""

import os
import webbrowser
from html import escape
from pathlib import Path

import click

from fullrank.cli.options import HOME, settings_from
from fullrank.errors import Unavailable
from fullrank.home import find_running, login_link


@click.command()
@HOME
@click.option("--print", "only_prints", is_flag=True, help="Print the login link; open nothing.")
def command(home: Path | None, only_prints: bool) -> None:
    """Open the Job Center in a browser, logged in.

    Where there is no browser, the login link is printed. It lets in whoever has it: keep it to yourself.
    """
    where = settings_from({"home": home}).home
    running = find_running(where)
    if running is None:
        raise Unavailable(f"no control plane runs in {where}")
    link = login_link(where, running)
    if only_prints or not _opened(where / "login.html", link):
        click.echo(link)
    else:
        click.echo(f"opening {running.ui}; if nothing happens, `fullrank open --print` gives you the link")


def _opened(note: Path, link: str) -> bool:
    """By way of a file that only its owner can read: a browser's own arguments are in the list of processes."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    text = f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(link)}">\n'
    with open(os.open(note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    return browser.open(note.as_uri())
