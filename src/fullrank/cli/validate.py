"""`fullrank validate`: every complaint about manifests, without a server."""

import click

from fullrank.api.meta import name_of, namespace_of
from fullrank.cli.manifests import Manifest, documents_in, manifest_of
from fullrank.controlplane.admission import Admission
from fullrank.dialects.registry import SUBMITTED_KINDS
from fullrank.errors import BadRequest, Cause, Invalid


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option("-n", "--namespace", default="default", help="For objects that name none.  [default: default]")
@click.pass_context
def command(context: click.Context, files: tuple[str, ...], namespace: str) -> None:
    """Check the manifests in FILE… without a server: every complaint with its path and a hint.

    Exit code 0 if there is none, 2 otherwise.
    """
    admission = Admission(SUBMITTED_KINDS)
    flawed = [_is_flawed(admission, file, namespace) for file in files]
    context.exit(2 if any(flawed) else 0)


def _is_flawed(admission: Admission, file: str, namespace: str) -> bool:
    """Tells what is wrong with a file, document by document; one bad document does not hide the next."""
    try:
        found = documents_in(file)
    except BadRequest as error:
        click.echo(f"error: {error}", err=True)
        return True
    flaws = 0
    for number, document in enumerate(found, start=1):
        try:
            manifest = manifest_of(file, document, namespace)
        except BadRequest as error:
            click.echo(f"error: {error} (document {number})", err=True)
            flaws += 1
            continue
        causes = _complaints(admission, manifest)
        title = f"{file}: {manifest.kind.kind} {namespace_of(manifest.obj)}/{name_of(manifest.obj)}"
        flaws += bool(causes)
        click.echo(f"{title}: {'not accepted' if causes else 'fine'}")
        for cause in causes:
            click.echo(
                f"  {cause.field}: {cause.message}" + (f"\n    hint: {cause.hint}" if cause.hint else "")
            )
    return bool(flaws)


def _complaints(admission: Admission, manifest: Manifest) -> list[Cause]:
    unknown = [
        Cause(one.path, "unknown field", hint=one.hint)
        for one in admission.unknown(manifest.kind, manifest.obj)
    ]
    try:
        admission(manifest.kind, manifest.obj, None)
    except Invalid as error:
        return [*unknown, *error.causes]
    return unknown
