"""From objects to what the floor is told: gangs with their asks and standing, queues with their quotas, priorities."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from fullrank.api.annotations import PREEMPTED_BY
from fullrank.api.devices import devices_of
from fullrank.api.jobs import TrainingJob
from fullrank.api.meta import Json, annotations_of, is_terminating, labels_of, name_of, namespace_of, uid_of
from fullrank.api.quantity import amount, milli
from fullrank.api.queues import CLUSTER_QUEUE, LOCAL_QUEUE, QUEUE_LABEL, RESOURCE_FLAVOR
from fullrank.api.scheme import PRIORITY_CLASS
from fullrank.client.cache import Cache
from fullrank.client.port import Key, Reader
from fullrank.dialects.contract import JobKind
from fullrank.scheduling.amounts import Ask, asked_by
from fullrank.scheduling.gang import Gang, Standing
from fullrank.scheduling.line import Preemption, QueuePolicy
from fullrank.scheduling.rooms import Seat

PREEMPTIONS: Mapping[str, Preemption] = {
    "LowerPriority": "LowerPriority", "LowerOrNewerEqualPriority": "LowerOrNewerEqualPriority",
}  # fmt: skip
SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
DEFAULT_QUEUE = "default"
ENDED = ("Succeeded", "Failed")


class Membership(NamedTuple):
    """The ClusterQueue a gang belongs to, and why it may not start there, if so."""

    queue: str
    hindrance: str = ""
    local: str = ""  # the LocalQueue that leads there, as `namespace/name`


class Priority(NamedTuple):
    value: int = 0
    preempts: bool = True


class Rules:
    """Queues and priority classes, as they are configured now."""

    def __init__(self, client: Reader) -> None:
        self.cluster_queues = Cache(client, CLUSTER_QUEUE)
        self.local_queues = Cache(client, LOCAL_QUEUE)
        self.flavors = Cache(client, RESOURCE_FLAVOR)
        self.priorities = Cache(client, PRIORITY_CLASS)
        self.caches = (self.cluster_queues, self.local_queues, self.flavors, self.priorities)

    def listen(self, changed: Callable[[], None]) -> None:
        """Calls back when something changed that jobs are seated by."""

        def heard(old: Json | None, new: Json | None) -> None:
            if old is None or new is None or _content(old) != _content(new):
                changed()

        for cache in self.caches:
            cache.listen(heard)

    def policies(self) -> dict[str, QueuePolicy]:
        return {name_of(queue): _policy(queue) for queue in self.cluster_queues.all()}

    def membership(self, namespace: str, wanted: str) -> Membership:
        """Where a name leads. In a home without queues every name means the default one, which has no quota."""
        queues, locals_ = self.cluster_queues.all(), self.local_queues.all()
        if not wanted or not (queues or locals_):
            return Membership("")
        local = self.local_queues.get(Key(LOCAL_QUEUE, namespace, wanted))
        if local is None:
            if self.cluster_queues.get(Key(CLUSTER_QUEUE, "", wanted)):
                return self._in_cluster_queue(wanted)
            if wanted == DEFAULT_QUEUE:
                return Membership("")
            known = sorted(name_of(one) for one in locals_ if namespace_of(one) == namespace)
            or_one = f" or name one of {', '.join(known)}" if known else ""
            return Membership(
                "", f'queue "{wanted}" does not exist: create LocalQueue {namespace}/{wanted}{or_one}'
            )
        title, target = f"{namespace}/{wanted}", local["spec"]["clusterQueue"]
        if self.cluster_queues.get(Key(CLUSTER_QUEUE, "", target)) is None:
            text = f'LocalQueue {title} leads to ClusterQueue "{target}", which does not exist: create it'
            return Membership("", text, title)
        if _on_hold(local):
            text = f"queue {wanted} is on hold: set stopPolicy of LocalQueue {title} to None"
            return Membership(target, text, title)
        return self._in_cluster_queue(target)._replace(local=title)

    def hindrance_of(self, cluster_queue: str) -> str:
        """Why nothing starts in a ClusterQueue, if so."""
        return self._in_cluster_queue(cluster_queue).hindrance

    def _in_cluster_queue(self, name: str) -> Membership:
        queue = self.cluster_queues.get(Key(CLUSTER_QUEUE, "", name)) or {}
        if _on_hold(queue):
            return Membership(name, f"queue {name} is on hold: set stopPolicy of ClusterQueue {name} to None")
        for flavor, _ in shares_of(queue):
            if self.flavors.get(Key(RESOURCE_FLAVOR, "", flavor)) is None:
                return Membership(
                    name, f'queue {name}: its ResourceFlavor "{flavor}" does not exist: create it'
                )
        return Membership(name)

    def priority(self, names: Iterable[str]) -> Priority:
        """Of the first class that is named and there; else of the one that is everybody's default."""
        for name in names:
            if name in SYSTEM_PRIORITIES:
                return Priority(SYSTEM_PRIORITIES[name])
            if found := self.priorities.get(Key(PRIORITY_CLASS, "", name)):
                return _priority(found)
        defaults = [_priority(one) for one in self.priorities.all() if one.get("globalDefault")]
        return min(defaults, default=Priority())


def _content(obj: Json) -> Json:
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")}


def _priority(found: Json) -> Priority:
    return Priority(found.get("value", 0), found.get("preemptionPolicy") != "Never")


def _on_hold(queue: Json) -> bool:
    return bool((queue.get("spec") or {}).get("stopPolicy", "None") != "None")


def shares_of(queue: Json) -> list[tuple[str, Json]]:
    """What a ClusterQueue has of each flavor: the flavor's name, and a resource with its quota."""
    groups: list[Json] = (queue.get("spec") or {}).get("resourceGroups") or []
    flavors = [flavor for group in groups for flavor in group["flavors"]]
    return [(flavor["name"], share) for flavor in flavors for share in flavor["resources"]]


def _policy(queue: Json) -> QueuePolicy:
    spec: Json = queue.get("spec") or {}
    quota: dict[str, int] = {}
    for _, share in shares_of(queue):
        quota[share["name"]] = quota.get(share["name"], 0) + milli(share["nominalQuota"])
    wanted = (spec.get("preemption") or {}).get("withinClusterQueue", "")
    return QueuePolicy(
        quota,
        strict=spec.get("queueingStrategy") == "StrictFIFO",
        preemption=PREEMPTIONS.get(wanted, "Never"),
        weight=float(amount((spec.get("fairSharing") or {}).get("weight", 1))),
    )


class Claims:
    """What gangs are, read once from each version of a job and from each pod: there are many pods, and many looks."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._asks: dict[str, Ask] = {}
        self._jobs: dict[str, tuple[Json, Gang]] = {}

    def forget_pod(self, pod: Json) -> None:
        self._asks.pop(uid_of(pod), None)

    def forget_job(self, uid: str) -> None:
        self._jobs.pop(uid, None)

    def of_pod(self, pod: Json) -> Gang:
        """A pod that belongs to no job is a gang of one."""
        priority = self._rules.priority((pod["spec"].get("priorityClassName") or "",))
        membership = self._rules.membership(namespace_of(pod), labels_of(pod).get(QUEUE_LABEL, ""))
        return Gang(
            uid_of(pod),
            f"{namespace_of(pod)}/{name_of(pod)}",
            created=pod["metadata"].get("creationTimestamp") or "",
            queue=membership.queue,
            local_queue=membership.local,
            hindrance=membership.hindrance,
            priority=priority.value,
            preempts=priority.preempts,
            standing="leaving" if is_terminating(pod) else "active",
            asks=self._asked((pod,)),
            seated=_seated((pod,)),
        )

    def of_leftovers(self, uid: str, title: str, pods: list[Json]) -> Gang:
        """What is left of a job that is gone."""
        seated = _seated(pods)
        asks = {pod: ask for pod, ask in self._asked(pods).items() if pod in seated}
        return Gang(uid, title, standing="leaving", asks=asks, seated=seated)

    def of_job(self, job_kind: JobKind, obj: Json, pods: list[Json]) -> Gang:
        known = self._jobs.get(uid_of(obj))
        if known is None or known[0] is not obj:
            known = self._jobs[uid_of(obj)] = obj, self._without_pods(job_kind, obj)
        gang = known[1]
        if len(pods) < len(gang.members) and gang.standing == "active" and not any(map(_node, pods)):
            return replace(gang, complete=False)  # its pods are being made: there is nothing else to know yet
        there = {name_of(pod) for pod in pods}
        done = {name_of(pod) for pod in pods if _phase(pod) == "Succeeded"}
        return replace(
            gang,
            complete=not gang.suspendable or gang.members <= there,
            asks={**gang.asks, **self._asked(pods)},
            seated=_seated(pods),
            members=gang.members - done,
        )

    def _without_pods(self, job_kind: JobKind, obj: Json) -> Gang:
        """What the job itself says; while it is parked, its templates say what its pods would ask for."""
        job = job_kind.read(obj)
        gang, standing = job_kind.gang(job), standing_of(job, obj)
        names = {gang.name(member): member.role for member in gang.due}
        priority = self._priority(job)
        wanted = job.labels.get(QUEUE_LABEL) or job.run_policy.queue
        membership = self._rules.membership(job.namespace, wanted)
        templates = {role.name: role.template.get("spec") or {} for role in job.roles}
        asks = (
            {role: Ask.of(asked_by(spec)) for role, spec in templates.items()} if standing == "parked" else {}
        )
        return Gang(
            job.uid,
            f"{job.namespace}/{job.name}",
            created=obj["metadata"].get("creationTimestamp") or "",
            queue=membership.queue,
            local_queue=membership.local,
            hindrance=membership.hindrance,
            priority=priority.value,
            preempts=priority.preempts,
            suspendable=not job.managed_elsewhere,
            standing=standing,
            asks={name: asks[role] for name, role in names.items()} if asks else {},
            members=frozenset(names),
        )

    def _priority(self, job: TrainingJob) -> Priority:
        if job.run_policy.priority is not None:
            return Priority(job.run_policy.priority)
        classes = ((role.template.get("spec") or {}).get("priorityClassName") or "" for role in job.roles)
        return self._rules.priority((job.run_policy.priority_class, *classes))

    def _asked(self, pods: Iterable[Json]) -> dict[str, Ask]:
        waiting_or_seated = (
            pod for pod in pods if _is_unfinished(pod) and (_node(pod) or not is_terminating(pod))
        )
        return {name_of(pod): self._ask(pod) for pod in waiting_or_seated}

    def _ask(self, pod: Json) -> Ask:
        uid = uid_of(pod)
        if uid not in self._asks:
            self._asks[uid] = Ask.of(asked_by(pod["spec"]))
        return self._asks[uid]


def standing_of(job: TrainingJob, obj: Json) -> Standing:
    if job.terminating:
        return "leaving"
    if job.status.finished:
        return "over" if job.run_policy.keeps_pods_on_purpose else "leaving"
    if job.run_policy.suspend:
        return "parked" if PREEMPTED_BY in annotations_of(obj) else "leaving"
    return "active"


def bearing(pod: Json) -> tuple[object, ...]:
    """All of a pod that matters to where anybody sits: most changes of a pod do not."""
    return _node(pod), _phase(pod) in ENDED and _phase(pod), is_terminating(pod), devices_of(pod)


def _seated(pods: Iterable[Json]) -> dict[str, Seat]:
    return {
        name_of(pod): Seat(_node(pod), devices_of(pod)) for pod in pods if _node(pod) and _is_unfinished(pod)
    }


def _is_unfinished(pod: Json) -> bool:
    return _phase(pod) not in ENDED


def _phase(pod: Json) -> str:
    phase: str = (pod.get("status") or {}).get("phase", "Pending")
    return phase


def _node(pod: Json) -> str:
    node: str = pod["spec"].get("nodeName") or ""
    return node
