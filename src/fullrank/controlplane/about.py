"""Everything a client asks about the server itself: its health, its version, what it serves and how that looks."""

from aiohttp import web

from fullrank.api.meta import Json
from fullrank.controlplane import answers
from fullrank.controlplane.discovery import AGGREGATED, VERSION, Discovery
from fullrank.controlplane.openapi import OpenApi
from fullrank.controlplane.questions import NO_SUCH_RESOURCE, form_of
from fullrank.errors import NotFound

# Where kubectl finds nothing in OpenAPI v3 (a List, an unknown kind) it wants to check against v2, in protobuf. An
# empty document lets it go on, and the server checks what it is then sent.
SWAGGER = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
EMPTY_SWAGGER = b"\x0a\x032.0"


class About:
    def __init__(self, discovery: Discovery, openapi: OpenApi) -> None:
        self._discovery = discovery
        self._openapi = openapi

    def answer(self, parts: list[str], accept: str, host: str) -> web.Response:
        match parts:
            case ["livez" | "readyz" | "healthz"]:
                return answers.raw(b"ok", media="text/plain; charset=utf-8")
            case ["api" | "apis" as root] if form_of(accept) == "aggregated":
                everything = self._discovery.aggregated(core=root == "api")
                return answers.encoded(everything, media=AGGREGATED)
            case ["openapi", "v2"]:
                return answers.raw(EMPTY_SWAGGER, media=SWAGGER)
            case ["openapi", "v3", *place] if place:
                return self._document("/".join(place))
        found = self._found(parts, host)
        if found is None:
            raise NotFound(NO_SUCH_RESOURCE)
        return answers.encoded(found)

    def _found(self, parts: list[str], host: str) -> Json | None:
        match parts:
            case ["version"]:
                return VERSION
            case ["api"]:
                return self._discovery.core_versions(host)
            case ["apis"]:
                return self._discovery.groups()
            case ["api", version]:
                return self._discovery.resources("", version)
            case ["apis", group]:
                return self._discovery.group(group)
            case ["apis", group, version]:
                return self._discovery.resources(group, version)
            case ["openapi", "v3"]:
                return self._openapi.index()
        return None

    def _document(self, place: str) -> web.Response:
        document = self._openapi.document(place)
        if document is None:
            raise NotFound(NO_SUCH_RESOURCE)
        response = answers.raw(document)
        response.headers["Cache-Control"] = "public, immutable"  # its address holds its hash
        return response
