"""The image's own command: a scheduler or a server, as DMLC_ROLE says, until all workers are done."""

import os
import sys
import time

PARTING = 2  # seconds: the job ends with its scheduler, and the workers are to end by themselves before that

role = os.environ.get("DMLC_ROLE", "")
if role not in ("scheduler", "server"):
    sys.exit(f"DMLC_ROLE is {role!r}: without a command this image is only a scheduler or a server; give the worker a command")

workers, servers = os.environ.get("DMLC_NUM_WORKER"), os.environ.get("DMLC_NUM_SERVER")
meeting_point = f"{os.environ.get('DMLC_PS_ROOT_URI')}:{os.environ.get('DMLC_PS_ROOT_PORT')}"
print(f"MXNet {role}: {servers} server(s) and {workers} worker(s) meet at {meeting_point}")
try:
    import mxnet  # noqa: F401  # in these two roles the import serves, and ends the process
except SystemExit:
    print(f"MXNet {role}: all workers are done.")
    if role == "scheduler":
        time.sleep(PARTING)
    raise
