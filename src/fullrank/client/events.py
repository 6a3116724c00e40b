"""Events on objects: what happened, how often, when last. One event a happening; a repeat raises its count."""

import hashlib
import logging

from fullrank.api.meta import Json, name_of, namespace_of, stamp, uid_of
from fullrank.api.scheme import EVENT
from fullrank.client.port import Client, Key
from fullrank.clock import Clock
from fullrank.errors import AlreadyExists, FullrankError, NotFound

logger = logging.getLogger(__name__)

LONGEST_NAME = 253


class EventRecorder:
    """Writes core/v1 Events in a component's name. One that cannot be written is logged: no deed fails for that."""

    def __init__(self, client: Client, component: str, clock: Clock, *, host: str = "") -> None:
        self._client = client
        self._source = {"component": component} | ({"host": host} if host else {})
        self._component = component
        self._clock = clock

    async def emit(
        self,
        obj: Json,
        type: str,  # noqa: A002
        reason: str,
        message: str,
        *,
        field_path: str = "",
    ) -> None:
        """Tells of an object; `type` is Normal or Warning, `field_path` the part of the object it is about."""
        event = self._event(obj, type, reason, message, field_path)
        try:
            await self._write(event)
        except FullrankError as problem:
            logger.warning("event %s of %s was not written: %s", reason, name_of(obj), problem)

    async def _write(self, event: Json) -> None:
        try:
            await self._client.create(EVENT, event)
        except AlreadyExists:
            await self._count(event)

    async def _count(self, event: Json) -> None:
        key = Key(EVENT, namespace_of(event), name_of(event))
        try:
            known = await self._client.get(key)
            again = {"count": int(known.get("count") or 1) + 1, "lastTimestamp": event["lastTimestamp"]}
            await self._client.patch(key, again)
        except NotFound:
            return  # it expired this moment: not worth a second try

    def _event(self, obj: Json, type: str, reason: str, message: str, field_path: str) -> Json:  # noqa: A002
        now = stamp(self._clock.now())
        involved = {
            "apiVersion": obj["apiVersion"], "kind": obj["kind"], "namespace": namespace_of(obj), "name": name_of(obj),
            "uid": uid_of(obj), "resourceVersion": obj["metadata"].get("resourceVersion"), "fieldPath": field_path,
        }  # fmt: skip
        # The name is made of what happened, so that a repeat meets it, also after a restart of the component.
        happening = "\0".join((self._component, uid_of(obj), field_path, type, reason, message))
        suffix = "." + hashlib.sha256(happening.encode()).hexdigest()[:16]
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": name_of(obj)[: LONGEST_NAME - len(suffix)] + suffix,
                "namespace": namespace_of(obj) or "default",
            },
            "involvedObject": {name: value for name, value in involved.items() if value},
            "type": type,
            "reason": reason,
            "message": message,
            "source": self._source,
            "reportingComponent": self._component,
            "reportingInstance": self._source.get("host", ""),
            "firstTimestamp": now,
            "lastTimestamp": now,
            "eventTime": None,
            "count": 1,
        }
