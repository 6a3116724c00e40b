"""The client port over HTTP: the embedded control plane or any real cluster, they cannot be told apart."""

import ssl
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self, cast
from urllib.parse import quote

import aiohttp
import anyio.lowlevel
import msgspec

from fullrank import __version__
from fullrank.api.meta import Json, name_of, namespace_of
from fullrank.api.scheme import POD, Kind
from fullrank.client.kubeconfig import Connection, Credentials
from fullrank.client.port import EventType, Key, Listing, PatchType, Propagation, WatchEvent
from fullrank.errors import (
    AlreadyExists,
    BadRequest,
    Cause,
    CauseReason,
    Conflict,
    Forbidden,
    FullrankError,
    Gone,
    Invalid,
    NotAllowed,
    NotFound,
    TooLarge,
    Unauthorized,
    Unavailable,
    Unsupported,
)

AGENT = f"fullrank/{__version__}"  # by which servers know who has written what
WATCH_SECONDS = 300  # then the server ends the stream and the watcher goes on where it was
PATCHES: dict[PatchType, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
_CLASSES: tuple[type[FullrankError], ...] = (
    AlreadyExists, BadRequest, Conflict, Forbidden, Gone, NotAllowed, NotFound, TooLarge, Unauthorized, Unsupported,
)  # fmt: skip
_BY_REASON = {each.reason: each for each in _CLASSES} | {"Gone": Gone}
_BY_CODE = {each.code: each for each in reversed(_CLASSES)} | {409: Conflict}


class HttpClient:
    """Use it as `async with HttpClient(connection) as client`: connections live as long as that."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._proof = connection.credentials
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        if self._connection.plugin:
            self._proof = await self._connection.plugin.credentials()
        self._session = self._opened()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()
            await anyio.lowlevel.checkpoint()  # lets go of sockets that were cut a moment ago

    def _opened(self) -> aiohttp.ClientSession:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=60)
        connector = aiohttp.TCPConnector(limit=128, ssl=tls(self._connection, self._proof))
        return aiohttp.ClientSession(connector=connector, timeout=timeout)

    # --- the port ---

    async def get(self, key: Key) -> Json:
        return await self._call("GET", path_of(key.kind, key.namespace, key.name))

    async def select(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        proceed: str = "",
    ) -> Listing:
        asked = {
            "labelSelector": labels,
            "fieldSelector": fields,
            "limit": str(limit or ""),
            "continue": proceed,
        }
        answer = await self._call("GET", path_of(kind, namespace), params=asked)
        # In a list, Kubernetes leaves out of each object what the list itself says.
        types = {"apiVersion": kind.api_version, "kind": kind.kind}
        items = [types | item for item in answer.get("items") or []]
        return Listing(items, answer["metadata"]["resourceVersion"], answer["metadata"].get("continue", ""))

    @asynccontextmanager
    async def watch(
        self, kind: Kind, namespace: str = "", *, since: str, labels: str = "", fields: str = ""
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        asked = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": since,
            "labelSelector": labels,
            "fieldSelector": fields,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        async with self._answer(
            "GET", path_of(kind, namespace), params=asked, patience=WATCH_SECONDS + 30
        ) as answer:
            yield _Events(Lines(answer))

    async def create(self, kind: Kind, obj: Json) -> Json:
        namespace = namespace_of(obj)
        if kind.namespaced and not namespace:
            raise BadRequest("an empty namespace may not be set during creation")
        whole = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        return await self._call("POST", path_of(kind, namespace), whole)

    async def replace(self, kind: Kind, obj: Json, *, subresource: str = "") -> Json:
        whole = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        return await self._call("PUT", path_of(kind, namespace_of(obj), name_of(obj), subresource), whole)

    async def patch(
        self,
        key: Key,
        patch: Json | list[Json],
        *,
        type: PatchType = "merge",  # noqa: A002
        subresource: str = "",
    ) -> Json:
        path = path_of(key.kind, key.namespace, key.name, subresource)
        return await self._call("PATCH", path, patch, content_type=PATCHES[type])

    async def delete(
        self, key: Key, *, uid: str = "", grace: int | None = None, propagation: Propagation = "Background"
    ) -> None:
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        options |= {"preconditions": {"uid": uid}} if uid else {}
        options |= {} if grace is None else {"gracePeriodSeconds": grace}
        await self._call("DELETE", path_of(key.kind, key.namespace, key.name), options)

    async def bind(self, pod: Key, node: str, *, uid: str = "") -> None:
        binding: Json = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace} | ({"uid": uid} if uid else {}),
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._call("POST", path_of(POD, pod.namespace, pod.name, "binding"), binding)

    # --- beyond the port, for the command line ---

    async def raw(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        """Whatever is at a path: discovery, versions, metrics."""
        async with self._answer("GET", path, params=params or {}) as answer:
            return await _whole(answer)

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str] | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of an answer as they come, such as a log that is followed; each keeps its newline."""
        async with self._answer("GET", path, params=params or {}, patience=None) as answer:
            yield Lines(answer)

    # --- the wire ---

    async def _call(
        self,
        method: str,
        path: str,
        body: Json | list[Json] | None = None,
        *,
        params: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Json:
        async with self._answer(method, path, body, params=params or {}, content_type=content_type) as answer:
            text = await _whole(answer)
        try:
            return msgspec.json.decode(text, type=Json)
        except msgspec.DecodeError as error:
            raise Unavailable(
                f"{self._connection.server} answered {method} {path} with what is not JSON"
            ) from error

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        body: Json | list[Json] | None = None,
        *,
        params: Mapping[str, str],
        content_type: str = "application/json",
        patience: float | None = 60,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One exchange; complaints of the server are raised as ours, and so is trouble on the way."""
        response = await self._asked(method, path, body, params, content_type, patience)
        if response.status == 401 and self._connection.plugin:
            response.release()
            await self._renew()
            response = await self._asked(method, path, body, params, content_type, patience)
        async with response:
            if response.status >= 400:
                raise complaint(response.status, await _whole(response))
            try:
                yield response
            finally:
                _break_off(response)

    async def _asked(
        self,
        method: str,
        path: str,
        body: Json | list[Json] | None,
        params: Mapping[str, str],
        content_type: str,
        patience: float | None,
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise Unavailable(f"the connection to {self._connection.server} is not open")
        headers = {"Accept": "application/json", "Content-Type": content_type, "User-Agent": AGENT}
        headers |= self._authorization()
        try:
            return await self._session.request(
                method,
                self._connection.server + path,
                params={name: value for name, value in params.items() if value},
                data=None if body is None else msgspec.json.encode(body),
                headers=headers,
                server_hostname=self._connection.server_name or None,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=patience),
            )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            why = str(error) or type(error).__name__
            raise Unavailable(f"cannot reach {self._connection.server}: {why}") from error

    def _authorization(self) -> dict[str, str]:
        token = self._proof.token
        if self._connection.token_file:
            token = self._connection.token_file.read_text().strip()
        if token:
            return {"Authorization": f"Bearer {token}"}
        if self._proof.username:
            return {"Authorization": aiohttp.BasicAuth(self._proof.username, self._proof.password).encode()}
        return {}

    async def _renew(self) -> None:
        """Credentials from a plugin run out; certificates among them need new connections."""
        if self._connection.plugin and self._session:
            self._proof = await self._connection.plugin.credentials()
            await self._session.close()
            self._session = self._opened()


class Lines:
    """The lines of a streamed answer, however long; may be cancelled and asked again without loss."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self._ready: list[bytes] = []
        self._rest = b""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while not self._ready:
            piece = await _piece(self._answer)
            if not piece:
                last, self._rest = self._rest, b""
                if last:
                    return last
                raise StopAsyncIteration
            *lines, self._rest = (self._rest + piece).split(b"\n")
            self._ready = [line + b"\n" for line in reversed(lines)]
        return self._ready.pop()


class _Events:
    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent:
        try:
            event = msgspec.json.decode(await anext(self._lines), type=Json)
        except msgspec.DecodeError as error:
            raise Unavailable(f"a watch was cut off in the middle of a line: {error}") from error
        if event["type"] == "ERROR":
            raise _error(event["object"].get("code", 500), event["object"])
        return WatchEvent(cast(EventType, event["type"]), event["object"])


def path_of(kind: Kind, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """`/api/v1/namespaces/default/pods/a/status`: where a collection, an object or a part of one lives."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    home = ("namespaces", namespace) if kind.namespaced and namespace else ()
    return "/".join(
        (root, *(quote(part, safe="") for part in (*home, kind.plural, name, subresource) if part))
    )


def tls(connection: Connection, proof: Credentials) -> ssl.SSLContext | bool:
    if not connection.server.startswith("https:"):
        return True
    try:
        context = ssl.create_default_context(cadata=connection.ca or None)
        if connection.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if proof.certificate:
            _load_certificate(context, proof)
    except (ssl.SSLError, ValueError) as error:
        raise BadRequest(f"the certificates for {connection.server} cannot be used: {error}") from error
    return context


def _load_certificate(context: ssl.SSLContext, proof: Credentials) -> None:
    """The ssl module takes files only; these live, for this user alone, as long as it reads them."""
    with tempfile.TemporaryDirectory(prefix="fullrank-") as folder:
        pair = Path(folder, "client.pem")
        pair.touch(mode=0o600)
        pair.write_text(f"{proof.certificate.strip()}\n{proof.key.strip()}\n")
        context.load_cert_chain(pair)


def _break_off(answer: aiohttp.ClientResponse) -> None:
    """A stream left in the middle is cut: closing TLS politely would keep its socket until the peer answers."""
    if not answer.content.at_eof() and answer.connection and answer.connection.transport:
        answer.connection.transport.abort()


async def _whole(answer: aiohttp.ClientResponse) -> bytes:
    try:
        return await answer.read()
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise Unavailable(
            f"{answer.url.host} broke off its answer: {error or type(error).__name__}"
        ) from error


async def _piece(answer: aiohttp.ClientResponse) -> bytes:
    try:
        return await answer.content.readany()
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise Unavailable(
            f"{answer.url.host} broke off its answer: {error or type(error).__name__}"
        ) from error


def complaint(code: int, body: bytes) -> FullrankError:
    """The error that a failed exchange stands for; any body will do."""
    try:
        status = msgspec.json.decode(body, type=Json)
    except msgspec.DecodeError:
        status = {"message": body.decode(errors="replace").strip()[:500]}
    return _error(code, status)


def _error(code: int, status: Json) -> FullrankError:
    message = status.get("message") or f"HTTP {code}"
    if status.get("reason") == Invalid.reason or code == Invalid.code:
        return _invalid(message, (status.get("details") or {}).get("causes") or [])
    found = _BY_REASON.get(status.get("reason") or "") or _BY_CODE.get(code, Unavailable)
    return found(message)


def _invalid(message: str, causes: Iterable[dict[str, Any]]) -> Invalid:
    listed = [
        Cause(
            each.get("field", ""),
            each.get("message", ""),
            cast(CauseReason, each.get("reason", "FieldValueInvalid")),
        )
        for each in causes
    ]
    error = Invalid(message.partition(" is invalid: ")[0], listed)
    error.args = (message,)  # the server's own words, not ours about its causes
    return error
