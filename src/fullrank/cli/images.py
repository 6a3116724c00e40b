"""`fullrank images`: what image names mean where pods are processes, and building ahead of time."""

from functools import partial
from pathlib import Path

import click

from fullrank.api.meta import Json
from fullrank.cli.building import built, images_of
from fullrank.cli.options import HOME, settings_from
from fullrank.cli.output import shown_size
from fullrank.cli.shape import OUTPUT, print_json, print_table
from fullrank.errors import NotFound
from fullrank.images.catalogue import BUILTIN, Images
from fullrank.images.entries import Entry
from fullrank.images.environments import is_whole
from fullrank.images.inventory import size_of


@click.group()
def command() -> None:
    """Show what image names mean here, and build their environments ahead."""


@command.command("list")
@HOME
@OUTPUT
def listed(home: Path | None, output: str) -> None:
    """List the image catalogue: the home's own entries, then the built-in ones. The first that fits an image counts."""
    images = images_of(settings_from({"home": home}).home)
    described = [_described(images, entry) for entry in images.entries()]
    if output == "json":
        print_json(described)
    else:
        rows = [(", ".join(one["images"]), _origin(one), _state(one)) for one in described]
        print_table(("IMAGES", "FROM", "ENVIRONMENT"), rows)
    for complaint in images.complaints:
        click.echo(f"warning: left out: {complaint}", err=True)


@command.command()
@click.argument("image")
@HOME
@OUTPUT
def show(image: str, home: Path | None, output: str) -> None:
    """Show what IMAGE means: which entry stands for it, its environment and its files."""
    images = images_of(settings_from({"home": home}).home)
    described = _described(images, _entry_of(images, image))
    if output == "json":
        print_json({"image": image, **described})
        return
    recipe: Json = described["environment"] or {}
    rows = [
        ("ENTRY", described["entry"]),
        ("PATTERNS", ", ".join(described["images"])),
        ("ENVIRONMENT", _state(described)),
        ("PYTHON", recipe.get("python") or "Fullrank's own"),
        ("REQUIREMENTS", ", ".join(recipe.get("requirements", ())) or "none"),
        ("FILES", ", ".join(described["files"]) or "none"),
        ("COMMAND", " ".join((*described["entrypoint"], *described["command"])) or "the manifest's"),
    ]
    print_table(("IMAGE", image), rows)


@command.command()
@click.argument("references", nargs=-1, required=True, metavar="IMAGE…")
@HOME
def build(references: tuple[str, ...], home: Path | None) -> None:
    """Build the environments of images now, so that jobs need not wait for them, nor for a network."""
    images = images_of(settings_from({"home": home}).home)
    for reference in references:
        entry = _entry_of(images, reference)
        built(f"image {reference}", partial(images.prepare, reference, {}))
        folder = images.folder_of(entry)
        size = f" ({shown_size(size_of(folder))}, {folder})" if folder else ""
        click.echo(f"image {reference} is ready{size}")


def _entry_of(images: Images, reference: str) -> Entry:
    entry = images.find(reference)
    if entry is None:
        raise NotFound(
            f"image {reference} is not in the catalogue: a job runs it in the environment Fullrank was started from; "
            f"describe it in {images.root.parent / 'images'}/NAME.yaml, or use `fullrank env create`"
        )
    return entry


def _described(images: Images, entry: Entry) -> Json:
    folder = images.folder_of(entry)
    built = folder is not None and is_whole(folder)
    environment = None
    if folder is not None and entry.recipe is not None:
        environment = {
            "path": str(folder),
            "built": built,
            "bytes": size_of(folder) if built else None,
            "python": entry.recipe.python or None,
            "requirements": list(entry.recipe.requirements),
        }
    return {
        "images": list(entry.patterns),
        "entry": str(entry.origin),
        "builtin": entry.origin.is_relative_to(BUILTIN),
        "environment": environment,
        "files": [file.target for file in entry.files],
        "entrypoint": list(entry.entrypoint),
        "command": list(entry.command),
    }


def _origin(described: Json) -> str:
    return "built in" if described["builtin"] else Path(described["entry"]).name


def _state(described: Json) -> str:
    environment: Json | None = described["environment"]
    if environment is None:
        return "none needed"
    return f"built, {shown_size(environment['bytes'])}" if environment["built"] else "not built yet"
