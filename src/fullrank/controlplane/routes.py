"""The API over HTTP: a request becomes one verb of the registry, and what comes of it an answer.

The only place that catches everything: whatever is not one of our errors is our bug, told as a 500 without its insides
and logged with them.
"""

import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

from fullrank.api.definitions import DEFINITION
from fullrank.api.meta import Json, stamp
from fullrank.api.scheme import POD, Kind
from fullrank.client.port import Key
from fullrank.clock import Clock
from fullrank.controlplane import answers, tables
from fullrank.controlplane.about import About
from fullrank.controlplane.access import OPEN, Access, Wish, refusal
from fullrank.controlplane.admission import Admission
from fullrank.controlplane.definitions import Definitions
from fullrank.controlplane.discovery import READ_ONLY, Discovery, Resource
from fullrank.controlplane.exec_route import PodExec, execute
from fullrank.controlplane.logs_route import PodLogs, logs
from fullrank.controlplane.metrics_route import GROUP as METRICS_GROUP
from fullrank.controlplane.metrics_route import METRICS, Meter, asked_for, metrics
from fullrank.controlplane.metrics_route import VERSION as METRICS_VERSION
from fullrank.controlplane.openapi import OpenApi
from fullrank.controlplane.proxy_route import Target, proxied
from fullrank.controlplane.questions import (
    Address,
    Query,
    address_of,
    form_of,
    json_object,
    list_revision,
    log_options,
)
from fullrank.controlplane.registry import Registry
from fullrank.controlplane.reviews import REVIEWS, reviewed
from fullrank.controlplane.store import Record
from fullrank.controlplane.streams import Shapes, WatchRequest, watch
from fullrank.controlplane.views import view_of
from fullrank.controlplane.writes import WARNINGS, Writes
from fullrank.errors import (
    BadRequest,
    Forbidden,
    FullrankError,
    NotAcceptable,
    NotAllowed,
    NotFound,
    TooLarge,
)
from fullrank.listener import Streams

log = logging.getLogger(__name__)

LARGEST_BODY = 3 * 1024 * 1024
NO_TABLE = "the server was unable to respond with a content type that the client supports"
NOT_ALLOWED = "the server does not allow this method on the requested resource"


class Api:
    """Everything a client can ask of the control plane."""

    def __init__(
        self,
        registry: Registry,
        admission: Admission,
        access: Access,
        logs: PodLogs,
        clock: Clock,
        *,
        containers: PodExec | None = None,
        meter: Meter | None = None,
    ) -> None:
        self._registry = registry
        self._admission = admission
        self._access = access
        self._logs = logs
        self._containers = containers
        self._meter = meter
        self._clock = clock
        self._writes = Writes(registry, admission, clock)
        kinds = tuple(registry.scheme)
        resources = [*map(Resource, kinds), *(Resource(kind, ("create",)) for kind in REVIEWS)]
        resources += [Resource(kind, READ_ONLY) for kind in (DEFINITION, *(METRICS if meter else ()))]
        self._definitions = Definitions(kinds, admission.schema_of, stamp(clock.now()))
        self._about = About(Discovery(resources), OpenApi(kinds, admission.schema_of))
        self.streams = Streams()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The edge: every error becomes a Status, and warnings go out with whatever the answer is."""
        response = await self._settled(request)
        for warning in answers.warnings(request.get(WARNINGS, ())):
            response.headers.add("Warning", warning)
        return response

    async def _settled(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except FullrankError as error:
            return answers.refusal(error)
        except web.HTTPRequestEntityTooLarge:
            return answers.refusal(TooLarge(f"Request entity too large: limit is {LARGEST_BODY}"))
        except web.RequestPayloadError as error:
            return answers.refusal(BadRequest(f"the body cannot be read: {' '.join(str(error).split())}"))
        except RecursionError:
            return answers.refusal(BadRequest("the request is nested too deeply"))
        except Exception:  # the edge of the process: a client never sees a traceback, the log always does
            log.exception("%s %s failed", request.method, request.path)
            message = "Internal error occurred: see the server's log"
            return answers.encoded(answers.status_of(500, "InternalError", message), status=500)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        parts = request.path.strip("/").split("/")
        if request.path not in OPEN:
            self._access.identity(request)
        match parts:
            case ["api", version, *rest] if rest:
                return await self._resource(request, "", version, rest)
            case ["apis", group, version, *rest] if rest:
                return await self._resource(request, group, version, rest)
        if request.method != "GET":
            raise NotAllowed(NOT_ALLOWED)
        return self._about.answer(parts, request.headers.get("Accept", ""), request.host)

    async def _resource(
        self, request: web.Request, group: str, version: str, rest: list[str]
    ) -> web.StreamResponse:
        review = next((kind for kind in REVIEWS if _leads_to(kind, group, version, rest)), None)
        if review is not None:
            return await self._review(request, review)
        identity = self._access.identity(request)
        if not identity.may_do_everything:
            watching = Query(request.query).flag("watch")
            raise Forbidden(refusal(identity, Wish.read(request.method, group, rest, watching=watching)))
        if (group, version) == (METRICS_GROUP, METRICS_VERSION) and self._meter and request.method == "GET":
            asked, now = asked_for(rest), self._clock.now()
            return answers.encoded(
                await metrics(self._registry, self._meter, asked, Query(request.query), now)
            )
        match rest:
            case ["namespaces", namespace, "pods", name, "proxy", *path] if not group:
                target = Target.read(name)
                pod = self._registry.get(Key(POD, namespace, target.name)).obj
                return await proxied(request, self.streams, pod, target, "/".join(path))
        if (group, version, rest[0]) == (DEFINITION.group, DEFINITION.version, DEFINITION.plural):
            return self._definition(request, rest[1:])
        address = address_of(self._registry.scheme, group, version, rest)
        verb = self._verb(request.method, address)
        return await verb(request, address)

    def _verb(
        self, method: str, address: Address
    ) -> Callable[[web.Request, Address], Awaitable[web.StreamResponse]]:
        level = (
            address.subresource
            if address.subresource in ("log", "binding", "exec", "finalize")
            else "object"
            if address.name
            else "all"
        )
        verbs = {
            ("all", "GET"): self._list,
            ("all", "POST"): self._writes.create,
            ("all", "DELETE"): self._writes.delete_all,
            ("object", "GET"): self._get,
            ("object", "PUT"): self._writes.replace,
            ("object", "PATCH"): self._writes.patch,
            ("object", "DELETE"): self._writes.delete,
            ("log", "GET"): self._log,
            ("exec", "GET"): self._exec,
            ("exec", "POST"): self._exec,
            ("binding", "POST"): self._writes.bind,
            ("finalize", "PUT"): self._writes.replace,
        }
        verb = verbs.get((level, method))
        everywhere = address.kind.namespaced and not address.namespace
        if verb is None or (everywhere and method == "POST") or (address.subresource and method == "DELETE"):
            raise NotAllowed(NOT_ALLOWED)
        return verb

    async def _get(self, request: web.Request, address: Address) -> web.StreamResponse:
        if Query(request.query).flag("watch"):
            return await self._watch(request, address)
        view = view_of(address.kind, address.subresource)
        return self._one(request, view.kind, view.record(self._registry.get(_key(address))))

    async def _list(self, request: web.Request, address: Address) -> web.StreamResponse:
        query = Query(request.query)
        if query.flag("watch"):
            return await self._watch(request, address)
        view = view_of(address.kind, "")
        revision, exactly = list_revision(query)
        named = exactly or revision > self._registry.store.revision
        page = self._registry.select(
            view.stored,
            address.namespace,
            labels=query.text("labelSelector"),
            fields=view.selected(query.text("fieldSelector")),
            limit=query.number("limit") or 0,
            proceed=query.text("continue"),
            at=revision if named and not query.text("continue") else None,
        )
        metadata = answers.list_metadata(page.revision, page.proceed, page.remaining)
        return self._several(request, view.kind, [view.record(each) for each in page.records], metadata)

    def _one(self, request: web.Request, kind: Kind, record: Record) -> web.Response:
        form = form_of(request.headers.get("Accept", ""))
        if form == "table":
            return self._table(request, kind, [record], answers.list_metadata(record.revision))
        return answers.encoded(tables.partial(record.obj)) if form == "partial" else answers.raw(record.raw)

    def _several(
        self, request: web.Request, kind: Kind, records: list[Record], metadata: Json
    ) -> web.Response:
        form = form_of(request.headers.get("Accept", ""))
        if form == "table":
            return self._table(request, kind, records, metadata)
        if form == "partial":
            return answers.encoded(tables.partial_list((record.obj for record in records), metadata))
        return answers.raw(answers.listed(kind, [record.raw for record in records], metadata))

    def _definition(self, request: web.Request, rest: list[str]) -> web.Response:
        query = Query(request.query)
        if request.method != "GET" or query.flag("watch") or len(rest) > 1:
            raise NotAllowed(NOT_ALLOWED)
        if rest:
            return self._one(request, DEFINITION, self._definitions.get(rest[0]))
        found = self._definitions.select(
            labels=query.text("labelSelector"), fields=query.text("fieldSelector")
        )
        return self._several(request, DEFINITION, found, answers.list_metadata(1))

    def _table(self, request: web.Request, kind: Kind, records: list[Record], metadata: Json) -> web.Response:
        include = request.query.get("includeObject", "Metadata")
        objects = (record.obj for record in records)
        return answers.encoded(
            tables.table(kind, objects, self._clock.now(), metadata=metadata, include=include)
        )

    async def _watch(self, request: web.Request, address: Address) -> web.StreamResponse:
        view = view_of(address.kind, "")
        wanted = WatchRequest.read(view, address.namespace, address.name, Query(request.query))
        form, include = (
            form_of(request.headers.get("Accept", "")),
            request.query.get("includeObject", "Metadata"),
        )
        shape = Shapes(view, form, include, self._clock)
        return await watch(request, self._registry, self.streams, wanted, shape)

    async def _log(self, request: web.Request, address: Address) -> web.StreamResponse:
        query = Query(request.query)
        options = log_options(query, self._clock.now())
        pod = self._registry.get(_key(address)).obj
        return await logs(request, self.streams, self._logs, pod, query.text("container"), options)

    async def _exec(self, request: web.Request, address: Address) -> web.StreamResponse:
        if self._containers is None:
            raise NotFound("no container can be entered: nothing runs pods here")
        pod = self._registry.get(_key(address)).obj
        return await execute(request, self.streams, self._containers, pod)

    async def _review(self, request: web.Request, kind: Kind) -> web.Response:
        if request.method != "POST":
            raise NotAllowed(NOT_ALLOWED)
        if form_of(request.headers.get("Accept", "")) == "table":
            raise NotAcceptable(NO_TABLE)
        asked = json_object(await request.read(), request.content_type, kind.kind)
        return answers.encoded(reviewed(kind, asked, self._access.identity(request)), status=201)


def _key(address: Address) -> Key:
    return Key(view_of(address.kind, address.subresource).stored, address.namespace, address.name)


def _leads_to(kind: Kind, group: str, version: str, rest: list[str]) -> bool:
    where = [kind.plural] if not kind.namespaced else ["namespaces", *rest[1:2], kind.plural]
    return (kind.group, kind.version, where) == (group, version, rest)
