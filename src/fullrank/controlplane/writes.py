"""Requests that change something: what they ask is checked, done by the registry, and signed by who asked."""

from typing import Any

from aiohttp import web

from fullrank.api.apply import Author, applied, signed
from fullrank.api.meta import Json, name_of, namespace_of, uid_of
from fullrank.api.scheme import POD, Kind
from fullrank.client.port import Key
from fullrank.clock import Clock
from fullrank.controlplane import answers, lifecycle
from fullrank.controlplane import metadata as meta
from fullrank.controlplane.admission import Admission
from fullrank.controlplane.questions import (
    Address,
    Query,
    delete_options,
    json_object,
    manager_of,
    patch_of,
    repeated_fields,
)
from fullrank.controlplane.registry import Registry, Sign
from fullrank.controlplane.views import View, view_of
from fullrank.errors import BadRequest, Cause, Unsupported

WARNINGS = web.RequestKey("warnings", list[str])
STEERING = "$"  # words like $patch steer a strategic merge; they are no fields


class Writes:
    def __init__(self, registry: Registry, admission: Admission, clock: Clock) -> None:
        self._registry = registry
        self._admission = admission
        self._clock = clock

    async def create(self, request: web.Request, address: Address) -> web.Response:
        query, body = Query(request.query), await request.read()
        view = view_of(address.kind, "")
        obj = json_object(body, request.content_type, view.kind.kind)
        self._check_unknown(request, view.kind, obj, body, "CreateOptions")
        stored = view.written(None, meta.shaped(view.kind, obj))
        created = await self._registry.create(
            view.stored,
            stored,
            namespace=address.namespace,
            dry_run=query.dry_run("CreateOptions"),
            sign=self._signature(request, view.stored, "", "CreateOptions"),
        )
        self._warn(request, view.stored, created)
        return answers.encoded(view.shown(created), status=201)

    async def replace(self, request: web.Request, address: Address) -> web.Response:
        query, body = Query(request.query), await request.read()
        view = view_of(address.kind, address.subresource)
        obj = json_object(body, request.content_type, view.kind.kind)
        self._check_unknown(request, view.kind, obj, body, "UpdateOptions")
        sign = self._signature(request, view.stored, address.subresource, "UpdateOptions")
        dry_run, key = query.dry_run("UpdateOptions"), _key(view, address)
        if view.is_plain:
            replaced = await self._registry.replace(
                key, obj, subresource=address.subresource, dry_run=dry_run, sign=sign
            )
        else:
            new = meta.shaped(view.kind, obj)
            _check_name(new, address.name)
            replaced = await self._registry.update(
                key, lambda old: view.written(old, new), dry_run=dry_run, sign=sign
            )
        self._warn(request, view.stored, replaced)
        return answers.encoded(view.shown(replaced))

    async def patch(self, request: web.Request, address: Address) -> web.Response:
        query, body = Query(request.query), await request.read()
        view = view_of(address.kind, address.subresource)
        form, patch = patch_of(body, request.content_type, address.kind)
        if form != "apply" and query.text("force"):
            raise _bad_option(
                "force", "Forbidden: may not be specified for non-apply patch", "FieldValueForbidden"
            )
        if isinstance(patch, dict):
            self._check_unknown(request, view.kind, patch, body, "PatchOptions")
        if form == "apply":
            return await self._apply(request, address, view, patch)
        dry_run, part = query.dry_run("PatchOptions"), address.subresource
        sign = self._signature(request, view.stored, part, "PatchOptions")
        key = _key(view, address)
        if view.is_plain:
            patched = await self._registry.patch(
                key, patch, type=form, subresource=part, dry_run=dry_run, sign=sign
            )
        else:

            def changed(old: Json) -> Json:
                new = lifecycle.patched(view.kind, view.patched(old), patch, form)
                return view.written(old, meta.shaped(view.kind, new))

            patched = await self._registry.update(key, changed, dry_run=dry_run, sign=sign)
        self._warn(request, view.stored, patched)
        return answers.encoded(view.shown(patched))

    async def _apply(self, request: web.Request, address: Address, view: View, patch: Any) -> web.Response:
        query, part, kind = Query(request.query), address.subresource, view.stored
        if part == "scale":
            raise Unsupported("a Scale cannot be applied: apply the object, or patch its scale")
        manager = query.text("fieldManager")
        if not manager:
            raise _bad_option(
                "fieldManager", "Required value: is required for apply patch", "FieldValueRequired"
            )
        config = _configuration(view, patch, address)
        author = Author(manager_of(query, "", "PatchOptions"), self._clock.now(), part)
        schema, force = self._admission.schema_of(kind), query.flag("force")

        def change(old: Json | None) -> Json:
            return applied(author, old, config, schema, force=force, custom=kind.is_custom)

        key, dry_run = _key(view, address), query.dry_run("PatchOptions")
        checked = self._checked(kind, part)
        if part or self._registry.exists(key):
            result, code = (
                await self._registry.update(key, change, subresource=part, dry_run=dry_run, sign=checked),
                200,
            )
        else:
            if uid_of(config):
                problem = f"uid mismatch: the provided object specified uid {uid_of(config)}"
                raise meta.conflict(kind, address.name, f"{problem}, and no existing object was found")
            born = change(None)
            result, code = (
                await self._registry.create(kind, born, namespace=address.namespace, dry_run=dry_run),
                201,
            )
        self._warn(request, kind, result)
        return answers.encoded(view.shown(result), status=code)

    async def delete(self, request: web.Request, address: Address) -> web.Response:
        options = delete_options(await request.read(), request.content_type, Query(request.query))
        view = view_of(address.kind, "")
        deletion = await self._registry.delete(
            _key(view, address),
            preconditions=options.preconditions,
            grace=options.grace,
            propagation=options.propagation,
            dry_run=options.dry_run,
        )
        if deletion.gone and address.kind not in answers.SHOWN_WHEN_GONE:
            return answers.encoded(answers.success(address.kind, name_of(deletion.obj), uid_of(deletion.obj)))
        return answers.encoded(view.shown(deletion.obj))

    async def delete_all(self, request: web.Request, address: Address) -> web.Response:
        query, view = Query(request.query), view_of(address.kind, "")
        options = delete_options(await request.read(), request.content_type, query)
        deleted = await self._registry.delete_collection(
            view.stored,
            address.namespace,
            labels=query.text("labelSelector"),
            fields=view.selected(query.text("fieldSelector")),
            grace=options.grace,
            propagation=options.propagation,
            dry_run=options.dry_run,
        )
        kind, revision = address.kind, self._registry.store.revision
        head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version}
        items = [view.shown(each) for each in deleted]
        return answers.encoded(head | {"metadata": answers.list_metadata(revision), "items": items})

    async def bind(self, request: web.Request, address: Address) -> web.Response:
        binding: Any = json_object(await request.read(), request.content_type, "Binding")
        target, metadata = binding.get("target"), binding.get("metadata") or {}
        node = target.get("name") if isinstance(target, dict) else None
        if not isinstance(node, str) or not node or not isinstance(metadata, dict):
            raise BadRequest("a Binding names its node: target: {kind: Node, name: …}")
        dry_run = Query(request.query).dry_run("CreateOptions")
        pod = Key(POD, address.namespace, address.name)
        await self._registry.bind(pod, node, uid=str(metadata.get("uid") or ""), dry_run=dry_run)
        return answers.encoded(answers.success(POD, address.name), status=201)

    def _signature(self, request: web.Request, kind: Kind, part: str, options: str) -> Sign:
        manager = manager_of(Query(request.query), request.headers.get("User-Agent", ""), options)
        author, check = Author(manager, self._clock.now(), part), self._checked(kind, part)
        schema = self._admission.schema_of(kind)

        def sign(old: Json | None, new: Json) -> Json:
            return signed(author, old, check(old, new), schema, custom=kind.is_custom)

        return sign

    def _checked(self, kind: Kind, part: str) -> Sign:
        """A status from outside is looked at before it is kept; the rest has been admitted."""

        def checked(old: Json | None, new: Json) -> Json:  # noqa: ARG001
            return self._admission.with_checked_status(kind, new) if part == "status" else new

        return checked

    def _check_unknown(self, request: web.Request, kind: Kind, obj: Json, body: bytes, options: str) -> None:
        """Warns about fields that will be dropped; or, where the client is strict about them, BadRequest."""
        wish = Query(request.query).field_validation(options)
        if wish == "Ignore":
            return
        found = [str(each) for each in self._admission.unknown(kind, obj) if STEERING not in each.path]
        found += [f'duplicate field "{path}"' for path in repeated_fields(body)]
        if found and wish == "Strict":
            problem = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
            raise BadRequest(f"{problem}: strict decoding error: {', '.join(found)}")
        request[WARNINGS] = found

    def _warn(self, request: web.Request, kind: Kind, obj: Json) -> None:
        request[WARNINGS] = [*request.get(WARNINGS, ()), *self._admission.warnings(kind, obj)]


def _key(view: View, address: Address) -> Key:
    return Key(view.stored, address.namespace, address.name)


def _check_name(obj: Json, name: str) -> None:
    if name_of(obj) != name:
        raise BadRequest(
            f"the name of the object ({name_of(obj)}) does not match the name on the URL ({name})"
        )


def _configuration(view: View, patch: Any, address: Address) -> Json:
    """What is applied, without the halves that this door does not write."""
    if not isinstance(patch, dict) or not patch.get("apiVersion") or not patch.get("kind"):
        raise BadRequest(
            "error unmarshalling the applied configuration: it must have an apiVersion and a kind"
        )
    config = meta.shaped(view.kind, patch)
    metadata = config["metadata"]
    if metadata.get("managedFields"):
        raise BadRequest("metadata.managedFields must be nil")
    named = {"name": address.name} | ({"namespace": address.namespace} if address.namespace else {})
    config = view.written(None, {**config, "metadata": {**named, **metadata}})
    _check_name(config, address.name)
    if namespace_of(config) != address.namespace:
        raise BadRequest("the namespace of the object does not match the namespace on the URL")
    if address.subresource == "status":
        half = {"apiVersion", "kind", "metadata", "status"}
        return {word: value for word, value in config.items() if word in half}
    if "status" in view.stored.subresources:
        return {word: value for word, value in config.items() if word != "status"}
    return config


def _bad_option(field: str, problem: str, reason: Any) -> Exception:
    return meta.invalid_options("PatchOptions", Cause(field, problem, reason))
