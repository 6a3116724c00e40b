"""Images as an engine has them: pulled as the manifest's pull policy says, and looked into for what they set."""

import json
import re
from collections.abc import Mapping

from fullrank.agent.containers.engine import Answer, Engine
from fullrank.agent.sources import Unprepared
from fullrank.api.meta import Json
from fullrank.images.catalogue import Image, ImageFailed, Progress

REGISTRY = re.compile(r"[^/]*[.:][^/]*|localhost")


class ContainerImages:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def present(self, container: Json) -> Image | None:
        """The image, if it is there and need not be pulled."""
        policy = pull_policy(container)
        if policy == "Always":
            return None
        image = await self._look(container["image"])
        if image is None and policy == "Never":
            raise Unprepared(
                f'Container image "{container["image"]}" is not present with pull policy of Never',
                reason="ErrImageNeverPull",
            )
        return image

    async def prepare(self, reference: str, _annotations: Mapping[str, str], progress: Progress) -> Image:
        """Pulls the image, or raises ImageFailed with the engine's last words."""
        await progress(f"pulling {full_name(reference)}")
        pulled = await self._engine.ask("pull", "--quiet", full_name(reference))
        image = await self._look(full_name(reference)) if pulled.code == 0 else None
        if image is None:
            raise ImageFailed(pulled.end or f"{self._engine.ways.engine} pull exited with {pulled.code}")
        return image

    async def _look(self, reference: str) -> Image | None:
        found: Answer = await self._engine.ask("image", "inspect", reference)
        return image_of(reference, json.loads(found.text)[0]) if found.code == 0 else None


def image_of(reference: str, inspected: Json) -> Image:
    config: Json = inspected.get("Config") or {}
    pairs = (one.partition("=") for one in config.get("Env") or [])
    return Image(
        reference,
        env={name: value for name, _, value in pairs},
        entrypoint=tuple(config.get("Entrypoint") or ()),
        command=tuple(config.get("Cmd") or ()),
        working_dir=config.get("WorkingDir") or "",
        stop_signal=config.get("StopSignal") or "",
        id=inspected["Id"],
    )


def pull_policy(container: Json) -> str:
    """What the manifest says, else as in Kubernetes: what is called `latest` may be another one by now."""
    asked: str = container.get("imagePullPolicy") or ""
    name = str(container["image"]).rpartition("/")[2]
    tagged = ":" in name or "@" in name
    return asked or ("IfNotPresent" if tagged and not name.endswith(":latest") else "Always")


def full_name(reference: str) -> str:
    """A name without a registry is Docker Hub's, as kubelets take it, whatever the engine is set to search."""
    first, slash, _ = reference.partition("/")
    if slash and REGISTRY.fullmatch(first):
        return reference
    return f"docker.io/{reference}" if slash else f"docker.io/library/{reference}"
