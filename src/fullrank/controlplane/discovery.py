"""What is served here: the answers to /version, /api and /apis, plain and aggregated, made from the kinds."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from fullrank import __version__
from fullrank.api.meta import Json
from fullrank.api.scheme import Kind

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
READ_ONLY = ("get", "list")
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

# The API we speak, which clients compare with their own version; our own release stands behind the plus.
VERSION: Json = {
    "major": "1",
    "minor": "34",
    "gitVersion": f"v1.34.4+fullrank-{__version__}",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "linux/amd64",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A subresource: what it takes or gives, and its verbs."""

    verbs: tuple[str, ...]
    kind: str = ""  # the object's own, if none is said
    group_version: tuple[str, str] = ("", "")


PARTS = {
    "status": Part(("get", "patch", "update")),
    "finalize": Part(("update",)),
    "log": Part(("get",)),
    "binding": Part(("create",), "Binding"),
    "exec": Part(("create", "get"), "PodExecOptions"),
    "scale": Part(("get", "patch", "update"), "Scale", ("autoscaling", "v1")),
}


@dataclass(frozen=True, slots=True)
class Resource:
    """One line of discovery."""

    kind: Kind
    verbs: tuple[str, ...] = VERBS

    def plain(self) -> list[Json]:
        kind = self.kind
        own: Json = {
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": list(self.verbs),
        }
        if kind.short_names:
            own["shortNames"] = list(kind.short_names)
        if kind.categories:
            own["categories"] = list(kind.categories)
        return [own, *(self._plain_part(name, PARTS[name]) for name in kind.subresources)]

    def _plain_part(self, name: str, part: Part) -> Json:
        shown: Json = {
            "name": f"{self.kind.plural}/{name}",
            "singularName": "",
            "namespaced": self.kind.namespaced,
            "kind": part.kind or self.kind.kind,
            "verbs": list(part.verbs),
        }
        group, version = part.group_version
        return shown | {"group": group, "version": version} if group else shown

    def aggregated(self) -> Json:
        kind = self.kind
        own: Json = {
            "resource": kind.plural,
            "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "singularResource": kind.singular,
            "verbs": list(self.verbs),
        }
        if kind.short_names:
            own["shortNames"] = list(kind.short_names)
        if kind.categories:
            own["categories"] = list(kind.categories)
        if kind.subresources:
            own["subresources"] = [self._aggregated_part(name, PARTS[name]) for name in kind.subresources]
        return own

    def _aggregated_part(self, name: str, part: Part) -> Json:
        group, version = part.group_version if part.group_version[0] else (self.kind.group, self.kind.version)
        return {
            "subresource": name,
            "responseKind": {"group": group, "version": version, "kind": part.kind or self.kind.kind},
            "verbs": list(part.verbs),
        }


class Discovery:
    """All the answers, made once."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        ordered = sorted(resources, key=lambda each: (each.kind.group, each.kind.version))
        self._by_version = {
            group_version: list(found)
            for group_version, found in groupby(
                ordered, key=lambda each: (each.kind.group, each.kind.version)
            )
        }

    def core_versions(self, address: str) -> Json:
        here = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": here}

    def groups(self) -> Json:
        groups = [_group(name, versions) for name, versions in self._versions().items() if name]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def group(self, name: str) -> Json | None:
        versions = self._versions().get(name)
        return (
            {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if name and versions else None
        )

    def resources(self, group: str, version: str) -> Json | None:
        found = self._by_version.get((group, version))
        if found is None:
            return None
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": [line for resource in found for line in resource.plain()],
        }

    def aggregated(self, *, core: bool) -> Json:
        """Everything at once: what kubectl asks for since 1.26."""
        items = [
            {
                "metadata": {"name": name} if name else {},
                "versions": [
                    {
                        "version": version,
                        "resources": [resource.aggregated() for resource in self._by_version[name, version]],
                        "freshness": "Current",
                    }
                    for version in versions
                ],
            }
            for name, versions in self._versions().items()
            if core == (name == "")
        ]
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }

    def _versions(self) -> dict[str, list[str]]:
        versions: dict[str, list[str]] = {}
        for group, version in self._by_version:
            versions.setdefault(group, []).append(version)
        return versions


def _group(name: str, versions: list[str]) -> Json:
    shown = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": shown, "preferredVersion": shown[-1]}
