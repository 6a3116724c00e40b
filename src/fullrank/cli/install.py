"""`fullrank install`: manifests to stdout, for `kubectl apply --server-side -f -`."""

import click
import yaml

from fullrank import __version__
from fullrank.dialects.registry import APP_KINDS, JOB_KINDS
from fullrank.install import manifests


@click.command()
@click.option("--image", default=f"fullrank:{__version__}", show_default=True, help="The operator's image.")
@click.option("-n", "--namespace", default="fullrank", show_default=True, help="Where the operator lives.")
def command(image: str, namespace: str) -> None:
    """Print what a Kubernetes cluster needs to run jobs.

    Apply it with: fullrank install | kubectl apply --server-side -f -
    """
    documents = manifests(JOB_KINDS, APP_KINDS, image=image, namespace=namespace)
    click.echo(yaml.dump_all(documents, Dumper=_Plain, sort_keys=False), nl=False)


class _Plain(yaml.CSafeDumper):
    """Without references: everything is written out where it belongs."""

    def ignore_aliases(self, _data: object) -> bool:
        return True
