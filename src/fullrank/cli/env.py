"""`fullrank env`: Python environments with names, for jobs to run in whatever their image is called."""

from functools import partial
from pathlib import Path

import click

from fullrank.api.meta import Json
from fullrank.cli.building import built, images_of
from fullrank.cli.options import HOME, settings_from
from fullrank.cli.output import shown_size
from fullrank.cli.shape import OUTPUT, print_json, print_table
from fullrank.errors import BadRequest, Conflict, NotFound
from fullrank.images.catalogue import Images
from fullrank.images.entries import PYTHON_VERSION, Recipe
from fullrank.images.inventory import (
    Environment,
    environments,
    give_name,
    is_name,
    packages_in,
    size_of,
    take_name,
)
from fullrank.images.requirements import requirements_in


@click.group()
def command() -> None:
    """Make and look after Python environments for jobs.

    A job runs in one with `fullrank run --runtime-env NAME`, or with the annotation `fullrank.dev/environment: NAME`.
    """


@command.command()
@click.argument("name")
@click.option("-r", "--requirement", "files", multiple=True, type=click.Path(path_type=Path), metavar="FILE")
@click.option(
    "--python", default="", metavar="3.N", help="A Python of this machine.  [default: Fullrank's own]"
)
@HOME
def create(name: str, files: tuple[Path, ...], python: str, home: Path | None) -> None:
    """Build an environment from files of requirements and call it NAME.

    Two names with the same content share one environment. Packages come from wherever pip is told to take them.
    """
    if not is_name(name):
        raise BadRequest(f"{name!r} is not a name: letters, digits, `.`, `_` and `-` are allowed")
    if python and not PYTHON_VERSION.fullmatch(python):
        raise BadRequest(f"--python: {python!r} is not a version such as 3.11")
    recipe = Recipe(tuple(line for file in files for line in requirements_in(file)), python)
    images = images_of(settings_from({"home": home}).home)
    wanted = images.root / images.environments.key(recipe)
    known = _named(images).get(name)
    if known is not None and known.path != wanted:
        raise Conflict(
            f"environment {name} exists with another content ({known.title}): "
            f"`fullrank env delete {name}` first, or choose another name"
        )
    folder = built(f"environment {name}", partial(images.environments.build, recipe))
    give_name(images.root, name, folder)
    click.echo(f"environment {name} is ready ({shown_size(size_of(folder))}, {folder})")


@command.command("list")
@HOME
@OUTPUT
def listed(home: Path | None, output: str) -> None:
    """List the environments that have names."""
    found = _named(images_of(settings_from({"home": home}).home))
    described = [_described(name, one) for name, one in found.items()]
    if output == "json":
        print_json(described)
        return
    rows = [
        (name, row["python"] or "?", found[name].title, shown_size(row["bytes"]))
        for name, row in zip(found, described, strict=True)
    ]
    print_table(("NAME", "PYTHON", "REQUIREMENTS", "SIZE"), rows)


@command.command()
@click.argument("name")
@HOME
@OUTPUT
def show(name: str, home: Path | None, output: str) -> None:
    """Show what is in an environment."""
    one = _found(images_of(settings_from({"home": home}).home), name)
    described = _described(name, one) | {
        "packages": [{"name": package, "version": version} for package, version in packages_in(one.path)]
    }
    if output == "json":
        print_json(described)
        return
    print_table(
        ("NAME", name),
        [
            ("PATH", str(one.path)),
            ("PYTHON", described["python"] or "?"),
            ("SIZE", shown_size(described["bytes"])),
            ("REQUIREMENTS", ", ".join(described["requirements"]) or "none"),
            ("INSTALLED", ", ".join(f"{each['name']} {each['version']}" for each in described["packages"])),
        ],
    )


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@HOME
def delete(names: tuple[str, ...], home: Path | None) -> None:
    """Delete environments by name.

    Pods that run in one go on; `fullrank prune` frees its space once they have ended and no other name means it.
    """
    images = images_of(settings_from({"home": home}).home)
    for name in names:
        one = _found(images, name)
        if not take_name(images.root, name):
            raise Conflict(f"{one.path} was not made by `fullrank env create`: remove the folder yourself")
        click.echo(f"environment {name} deleted")


def _named(images: Images) -> dict[str, Environment]:
    return dict(sorted((name, one) for one in environments(images) for name in one.names))


def _found(images: Images, name: str) -> Environment:
    known = _named(images)
    if name not in known:
        raise NotFound(f"no environment {name!r}; there are: {', '.join(known) or 'none yet'}")
    return known[name]


def _described(name: str, one: Environment) -> Json:
    return {
        "name": name,
        "path": str(one.path),
        "python": one.recipe.python if one.recipe else None,
        "requirements": list(one.recipe.requirements) if one.recipe else [],
        "bytes": size_of(one.path),
    }
