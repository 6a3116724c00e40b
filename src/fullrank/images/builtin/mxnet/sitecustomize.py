"""What every Python program in this image begins with, so that MXNet's members find each other and none hangs alone.

MXNet's members listen on the first network interface, whatever it may be, unless told otherwise: here it is the pod's own
address. And a worker with an error waits at its exit for all the others, which wait for it: here it ends at once.
"""

import os
import socket
import sys


def _end_at_once(*error):
    sys.__excepthook__(*error)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


if os.environ.get("DMLC_PS_ROOT_URI"):
    sys.excepthook = _end_at_once
    try:
        os.environ.setdefault("DMLC_NODE_HOST", socket.gethostbyname(socket.gethostname()))
    except OSError:
        pass  # a host that does not know itself: MXNet's own choice is as good as any
