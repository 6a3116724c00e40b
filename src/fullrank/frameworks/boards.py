"""The TensorBoard that a job has beside it, where its manifest asks for one."""

from collections.abc import Collection

from fullrank.api.apps import TENSORBOARD
from fullrank.frameworks.contract import Companion, Gang, Member, stem_of

BOARD_KINDS = (TENSORBOARD,)


def board_of(gang: Gang, _running: Collection[Member]) -> tuple[Companion, ...]:
    """Called as its pods begin. Whoever looks at it may pause and resume it."""
    spec = gang.job.options.get("tensorboardSpec")
    if spec is None:
        return ()
    return (Companion(TENSORBOARD, stem_of(gang.job), {"spec": spec}, own=("suspend",), optional=True),)
