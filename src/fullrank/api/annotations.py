"""What Fullrank itself writes on objects, or reads there: each name once, with what it means."""

APP = "fullrank.dev/app"  # a label, on what belongs to a web program: the name of its Service
ATTEMPT = (
    "fullrank.dev/attempt"  # a label, on pods of a job that restarts as one: which attempt they belong to
)
DEVICES = "fullrank.dev/devices"  # on a node: its GPUs; on a pod, by us: those of them that it has
ENVIRONMENT = "fullrank.dev/environment"  # on a job: run in this named environment, whatever the image
LAST_VISIT = (
    "fullrank.dev/last-visit"  # on a web program's object, by the Job Center: when somebody last used it
)
MADE_FROM = "fullrank.dev/made-from"  # on what runs a web program, by us: the spec that it was made from
PORTS = "fullrank.dev/ports"  # on a job, by us: members that could not have the port their manifest names
PREEMPTED_BY = (
    "fullrank.dev/preempted-by"  # on a job, by us: for whom it was suspended; we resume it ourselves
)
RESTART_SCOPE = (
    "fullrank.dev/restart-scope"  # on a job: `gang` makes a restart replace all members as one attempt
)
STOP = "fullrank.dev/stop"  # on a pod, by us: end its processes but keep the object; the value says why
