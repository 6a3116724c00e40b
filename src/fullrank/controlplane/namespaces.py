"""What every namespace has, put back when it is lost; and how a namespace goes: first its contents, then itself."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping

import anyio

from fullrank.api.meta import Json, is_terminating, name_of, namespace_of, stamp
from fullrank.api.scheme import NAMESPACE, POD, REGARDING_EVENT, Kind, Scheme
from fullrank.client.cache import Cache
from fullrank.client.port import Client, Key
from fullrank.clock import Clock
from fullrank.controlplane.registry import furnishings
from fullrank.errors import AlreadyExists, Conflict, FullrankError, NotFound

SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 2.0

log = logging.getLogger(__name__)


class Namespaces:
    def __init__(self, client: Client, scheme: Scheme, root_ca: str, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._contents = [kind for kind in scheme if kind.namespaced and kind not in (POD, REGARDING_EVENT)]
        self._root_ca = root_ca
        self._spaces = Cache(client, NAMESPACE)
        self._due: dict[str, None] = {}
        self._draining: set[str] = set()
        self._news = anyio.Event()

    async def run(self) -> None:
        furniture = [
            Cache(self._client, kind, fields=f"metadata.name={name_of(thing)}")
            for kind, thing in furnishings("", self._root_ca)
        ]
        self._spaces.listen(self._marker(name_of))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._spaces.run)
            for cache in furniture:
                cache.listen(self._marker(namespace_of))
                tasks.start_soon(cache.run)
            while True:
                await self._news.wait()
                due, self._due, self._news = self._due, {}, anyio.Event()
                for name in due:
                    space = self._spaces.get(Key(NAMESPACE, "", name))
                    if space and is_terminating(space) and name not in self._draining:
                        self._draining.add(name)
                        tasks.start_soon(self._drain, name)
                    elif space and not is_terminating(space):
                        await self._furnish(name)

    def _marker(self, space_of: Callable[[Json], str]) -> Callable[[Json | None, Json | None], None]:
        def mark(old: Json | None, new: Json | None) -> None:
            self._due[space_of(new or old or {})] = None
            self._news.set()

        return mark

    async def _furnish(self, namespace: str) -> None:
        for kind, wanted in furnishings(namespace, self._root_ca):
            key = Key(kind, namespace, name_of(wanted))
            content = {part: value for part, value in wanted.items() if part != "metadata"}
            try:
                found = await self._client.get(key)
                if {part: found.get(part) for part in content} != content:
                    await self._client.patch(key, content)
            except NotFound:
                await self._put_back(kind, wanted)
            except FullrankError as error:
                log.warning("cannot see to %s: %s", key, error)

    async def _put_back(self, kind: Kind, wanted: Json) -> None:
        try:
            await self._client.create(kind, wanted)
        except AlreadyExists:
            return
        except FullrankError as error:  # such as the namespace leaving in this very moment
            log.warning("cannot put back %s in %s: %s", kind.kind, namespace_of(wanted), error)

    async def _drain(self, name: str) -> None:
        """Asks all contents to go, again and again, until there are none: whatever holds them may take its time."""
        pause = SHORTEST_PAUSE
        try:
            while not await self._is_drained(name):
                await anyio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
        finally:
            self._draining.discard(name)

    async def _is_drained(self, name: str) -> bool:
        try:
            left = {POD: await self._emptied(POD, name)}
            if not left[POD]:  # whatever pods need stays until the last of them is gone
                left = {kind: await self._emptied(kind, name) for kind in self._contents}
            space = await self._client.get(Key(NAMESPACE, "", name))
            if any(left.values()):
                await self._tell(space, left)
                return False
            await self._client.replace(
                NAMESPACE, {**space, "spec": {"finalizers": []}}, subresource="finalize"
            )
        except NotFound:
            return True
        except Conflict:
            return False
        except FullrankError as error:
            log.warning("cannot empty namespace %s, will try again: %s", name, error)
            return False
        return True

    async def _tell(self, space: Json, left: Mapping[Kind, list[Json]]) -> None:
        """Writes down what still keeps a namespace from going, if that is news."""
        known = {each["type"]: each for each in space.get("status", {}).get("conditions") or []}
        found = remains(left)
        if any({**known.get(each["type"], {}), **each} != known.get(each["type"]) for each in found):
            now = stamp(self._clock.now())
            told = [
                {"lastTransitionTime": now} | known.get(each["type"], {}) | each
                if known.get(each["type"], {}).get("status") == each["status"]
                else {"lastTransitionTime": now} | each
                for each in found
            ]
            status = {**space.get("status", {}), "conditions": told}
            await self._client.patch(
                Key(NAMESPACE, "", name_of(space)), {"status": status}, subresource="status"
            )

    async def _emptied(self, kind: Kind, namespace: str) -> list[Json]:
        """What is still there of a kind; all of it has been asked to go."""
        found = (await self._client.select(kind, namespace)).items
        async with anyio.create_task_group() as tasks:
            for obj in found:
                if not is_terminating(obj):
                    tasks.start_soon(self._dismiss, Key(kind, namespace, name_of(obj)))
        return found

    async def _dismiss(self, key: Key) -> None:
        try:
            await self._client.delete(key)
        except NotFound:
            return
        except FullrankError as error:
            log.warning("cannot delete %s, will try again: %s", key, error)


def remains(left: Mapping[Kind, list[Json]]) -> list[Json]:
    """The conditions of a namespace that is not empty yet, in Kubernetes' words."""
    counted = {kind.group_resource: len(objects) for kind, objects in left.items() if objects}
    contents = ", ".join(
        f"{place}. has {count} resource instances" for place, count in sorted(counted.items())
    )
    held = Counter(
        finalizer
        for objects in left.values()
        for obj in objects
        for finalizer in obj["metadata"].get("finalizers") or []
    )
    holders = ", ".join(f"{word} in {count} resource instances" for word, count in sorted(held.items()))
    finalizing = (
        ("True", "SomeFinalizersRemain", f"Some content in the namespace has finalizers remaining: {holders}")
        if held
        else ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished")
    )
    words = {
        "NamespaceDeletionDiscoveryFailure": (
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": (
            "True",
            "SomeResourcesRemain",
            f"Some resources are remaining: {contents}",
        ),
        "NamespaceFinalizersRemaining": finalizing,
    }
    return [
        {"type": sort, "status": status, "reason": reason, "message": message}
        for sort, (status, reason, message) in words.items()
    ]
