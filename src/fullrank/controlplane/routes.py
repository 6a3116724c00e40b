"""The API over HTTP: a request becomes one verb of the registry, and what comes of it an answer.

The only place that catches everything: whatever is not one of our errors is our bug, told as a 500 without its insides
and logged with them.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from fullrank.api.definitions import DEFINITION
from fullrank.api.meta import Json, name_of, stamp, uid_of
from fullrank.api.scheme import POD, Kind
from fullrank.client.port import Key
from fullrank.clock import Clock
from fullrank.controlplane import answers, tables
from fullrank.controlplane.about import About
from fullrank.controlplane.access import OPEN, Access
from fullrank.controlplane.admission import Admission
from fullrank.controlplane.definitions import Definitions
from fullrank.controlplane.discovery import READ_ONLY, Discovery, Resource
from fullrank.controlplane.logs_route import PodLogs, logs
from fullrank.controlplane.openapi import OpenApi
from fullrank.controlplane.questions import (
    Address,
    Query,
    address_of,
    delete_options,
    form_of,
    json_object,
    log_options,
    patch_of,
)
from fullrank.controlplane.registry import Registry
from fullrank.controlplane.reviews import REVIEWS, reviewed
from fullrank.controlplane.store import Record
from fullrank.controlplane.streams import Shapes, Streams, WatchRequest, watch
from fullrank.errors import BadRequest, FullrankError, NotAllowed, TooLarge

log = logging.getLogger(__name__)

LARGEST_BODY = 3 * 1024 * 1024
WARNINGS = web.RequestKey("warnings", list[str])
NOT_ALLOWED = "the server does not allow this method on the requested resource"


class Api:
    """Everything a client can ask of the control plane."""

    def __init__(
        self, registry: Registry, admission: Admission, access: Access, logs: PodLogs, clock: Clock
    ) -> None:
        self._registry = registry
        self._admission = admission
        self._access = access
        self._logs = logs
        self._clock = clock
        kinds = tuple(registry.scheme)
        resources = [*map(Resource, kinds), *(Resource(kind, ("create",)) for kind in REVIEWS)]
        resources.append(Resource(DEFINITION, READ_ONLY))
        self._definitions = Definitions(kinds, admission.schema_of, stamp(clock.now()))
        self._about = About(Discovery(resources), OpenApi(kinds, admission.schema_of))
        self.streams = Streams()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The edge: every error becomes a Status, and warnings go out with whatever the answer is."""
        response = await self._settled(request)
        for warning in request.get(WARNINGS, ()):
            response.headers.add("Warning", answers.warning(warning))
        return response

    async def _settled(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except FullrankError as error:
            return answers.refusal(error)
        except web.HTTPRequestEntityTooLarge:
            return answers.refusal(TooLarge(f"Request entity too large: limit is {LARGEST_BODY}"))
        except RecursionError:
            return answers.refusal(BadRequest("the request is nested too deeply"))
        except Exception:  # the edge of the process: a client never sees a traceback, the log always does
            log.exception("%s %s failed", request.method, request.path)
            message = "Internal error occurred: see the server's log"
            return answers.encoded(answers.status_of(500, "InternalError", message), status=500)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.path not in OPEN:
            self._access.identity(request)
        parts = request.path.strip("/").split("/")
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
        review = next(
            (kind for kind in REVIEWS if (kind.group, kind.version, kind.plural) == (group, version, *rest)),
            None,
        )
        if review is not None:
            return await self._review(request, review)
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
            if address.subresource in ("log", "binding")
            else "object"
            if address.name
            else "all"
        )
        verbs = {
            ("all", "GET"): self._list,
            ("all", "POST"): self._create,
            ("all", "DELETE"): self._delete_all,
            ("object", "GET"): self._get,
            ("object", "PUT"): self._replace,
            ("object", "PATCH"): self._patch,
            ("object", "DELETE"): self._delete,
            ("log", "GET"): self._log,
            ("binding", "POST"): self._bind,
        }
        verb = verbs.get((level, method))
        everywhere = address.kind.namespaced and not address.namespace
        if verb is None or (everywhere and method == "POST") or (address.subresource and method == "DELETE"):
            raise NotAllowed(NOT_ALLOWED)
        return verb

    async def _get(self, request: web.Request, address: Address) -> web.StreamResponse:
        if Query(request.query).flag("watch"):
            return await self._watch(request, address)
        return self._one(request, address.kind, self._registry.get(_key(address)))

    async def _list(self, request: web.Request, address: Address) -> web.StreamResponse:
        query = Query(request.query)
        if query.flag("watch"):
            return await self._watch(request, address)
        page = self._registry.select(
            address.kind,
            address.namespace,
            labels=query.text("labelSelector"),
            fields=query.text("fieldSelector"),
            limit=query.number("limit") or 0,
            proceed=query.text("continue"),
        )
        metadata = answers.list_metadata(page.revision, page.proceed, page.remaining)
        return self._several(request, address.kind, page.records, metadata)

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
        wanted = WatchRequest.read(address.kind, address.namespace, address.name, Query(request.query))
        form, include = (
            form_of(request.headers.get("Accept", "")),
            request.query.get("includeObject", "Metadata"),
        )
        shape = Shapes(address.kind, form, include, self._clock)
        return await watch(request, self._registry, self.streams, wanted, shape)

    async def _create(self, request: web.Request, address: Address) -> web.Response:
        query, obj = Query(request.query), await _object_in(request, address.kind)
        self._check_unknown(request, address.kind, obj, "CreateOptions")
        dry_run = query.dry_run("CreateOptions")
        created = await self._registry.create(address.kind, obj, namespace=address.namespace, dry_run=dry_run)
        return answers.encoded(created, status=201)

    async def _replace(self, request: web.Request, address: Address) -> web.Response:
        query, obj = Query(request.query), await _object_in(request, address.kind)
        self._check_unknown(request, address.kind, obj, "UpdateOptions")
        if address.subresource == "status":
            self._admission.check_status(address.kind, obj | {"metadata": {"name": address.name}})
        replaced = await self._registry.replace(
            _key(address), obj, subresource=address.subresource, dry_run=query.dry_run("UpdateOptions")
        )
        return answers.encoded(replaced)

    async def _patch(self, request: web.Request, address: Address) -> web.Response:
        query = Query(request.query)
        form, patch = patch_of(await request.read(), request.content_type)
        if isinstance(patch, dict):
            self._check_unknown(request, address.kind, patch, "PatchOptions")
        key, part, dry_run = _key(address), address.subresource, query.dry_run("PatchOptions")
        if part == "status":
            outcome = await self._registry.patch(key, patch, type=form, subresource=part, dry_run=True)
            self._admission.check_status(address.kind, outcome)
        patched = await self._registry.patch(key, patch, type=form, subresource=part, dry_run=dry_run)
        return answers.encoded(patched)

    def _check_unknown(self, request: web.Request, kind: Kind, obj: Json, options: str) -> None:
        """Warns about fields that will be dropped; or, where the client is strict about them, BadRequest."""
        wish = Query(request.query).field_validation(options)
        # Words like $patch steer a strategic merge; they are no fields.
        found = self._admission.unknown(kind, obj) if wish != "Ignore" else []
        unknown = [str(each) for each in found if "$" not in each.path]
        if unknown and wish == "Strict":
            problem = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
            raise BadRequest(f"{problem}: strict decoding error: {', '.join(unknown)}")
        request[WARNINGS] = unknown

    async def _delete(self, request: web.Request, address: Address) -> web.Response:
        options = delete_options(await request.read(), request.content_type, Query(request.query))
        deletion = await self._registry.delete(
            _key(address),
            preconditions=options.preconditions,
            grace=options.grace,
            propagation=options.propagation,
            dry_run=options.dry_run,
        )
        if deletion.gone and address.kind != POD:
            return answers.encoded(answers.success(address.kind, name_of(deletion.obj), uid_of(deletion.obj)))
        return answers.encoded(deletion.obj)

    async def _delete_all(self, request: web.Request, address: Address) -> web.Response:
        query = Query(request.query)
        options = delete_options(await request.read(), request.content_type, query)
        deleted = await self._registry.delete_collection(
            address.kind,
            address.namespace,
            labels=query.text("labelSelector"),
            fields=query.text("fieldSelector"),
            grace=options.grace,
            propagation=options.propagation,
            dry_run=options.dry_run,
        )
        kind, revision = address.kind, self._registry.store.revision
        head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version}
        return answers.encoded(head | {"metadata": answers.list_metadata(revision), "items": deleted})

    async def _log(self, request: web.Request, address: Address) -> web.StreamResponse:
        query = Query(request.query)
        options = log_options(query, self._clock.now())
        pod = self._registry.get(_key(address)).obj
        return await logs(request, self.streams, self._logs, pod, query.text("container"), options)

    async def _bind(self, request: web.Request, address: Address) -> web.Response:
        binding: Any = json_object(await request.read(), request.content_type, "Binding")
        target, metadata = binding.get("target"), binding.get("metadata") or {}
        node = target.get("name") if isinstance(target, dict) else None
        if not isinstance(node, str) or not node or not isinstance(metadata, dict):
            raise BadRequest("a Binding names its node: target: {kind: Node, name: …}")
        dry_run = Query(request.query).dry_run("CreateOptions")
        await self._registry.bind(_key(address), node, uid=str(metadata.get("uid") or ""), dry_run=dry_run)
        return answers.encoded(answers.success(POD, address.name), status=201)

    async def _review(self, request: web.Request, kind: Kind) -> web.Response:
        if request.method != "POST":
            raise NotAllowed(NOT_ALLOWED)
        asked = json_object(await request.read(), request.content_type, kind.kind)
        return answers.encoded(reviewed(kind, asked, self._access.identity(request)), status=201)


def _key(address: Address) -> Key:
    return Key(address.kind, address.namespace, address.name)


async def _object_in(request: web.Request, kind: Kind) -> Json:
    return json_object(await request.read(), request.content_type, kind.kind)
