"""From a container in a manifest and its image to a `Launch`: everything resolved, nothing left to look up."""

import os
import pwd
from collections.abc import Mapping

from fullrank.agent.devices import device_variables, real_devices
from fullrank.agent.environment import expand
from fullrank.agent.places import Places
from fullrank.agent.runtime import Attempt, Launch, Limits, Mount, Powers
from fullrank.agent.sources import Unprepared
from fullrank.api.meta import Json, name_of, namespace_of, uid_of
from fullrank.api.quantity import milli, whole
from fullrank.images.catalogue import Image


def launch_of(
    pod: Json,
    container: Json,
    number: int,
    *,
    image: Image,
    variables: Mapping[str, str],
    mounts: tuple[Mount, ...],
    places: Places,
    addresses: Mapping[str, str],
) -> Launch:
    argv = _argv(container, image, variables)
    if not argv:
        raise Unprepared(
            f'container "{container["name"]}" has no command: the manifest gives none and nor does image '
            f'"{image.reference}"; set command or args'
        )
    user, group = _identity(pod, container, image)
    files = tuple(Mount(source, target, read_only=True) for target, source, _ in image.files)
    return Launch(
        Attempt(uid_of(pod), container["name"], number),
        argv=argv,
        env={
            "HOSTNAME": hostname_of(pod),
            **({} if image.id else {"HOME": _home(user)}),
            **image.env,
            **variables,
            **device_variables(pod, container),
        },
        log=places.log(pod, container["name"], number),
        hostname=hostname_of(pod),
        working_dir=container.get("workingDir") or image.working_dir or "/",
        user=user,
        group=group,
        groups=further_groups(pod),
        limits=_limits(container),
        read_only=(container.get("securityContext") or {}).get("readOnlyRootFilesystem", False),
        mounts=files + mounts,
        folders=image.folders,
        identity=frozenset({"HOSTNAME", *_names_of_itself(container)}),
        names=places.names(namespace_of(pod)),
        addresses=addresses,
        image=image.id,
        stop_signal=image.stop_signal,
        powers=powers_of(container),
        devices=real_devices(pod, container),
    )


def hostname_of(pod: Json) -> str:
    hostname: str = pod["spec"].get("hostname") or name_of(pod)
    return hostname[:63].rstrip("-.")


def _names_of_itself(container: Json) -> list[str]:
    """The variables that the manifest fills with the pod's own name."""
    return [
        one["name"]
        for one in container.get("env") or ()
        if ((one.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath") == "metadata.name"
    ]


def _argv(container: Json, image: Image, variables: Mapping[str, str]) -> tuple[str, ...]:
    """The manifest's command replaces both halves of the image's, its args only the second."""
    command, args = container.get("command"), container.get("args")
    first = command or image.entrypoint
    second = args or (() if command else image.command)
    return tuple(expand(word, variables) for word in (*first, *second))


def _identity(pod: Json, container: Json, image: Image) -> tuple[int | None, int | None]:
    wanted = {**(pod["spec"].get("securityContext") or {}), **(container.get("securityContext") or {})}
    return wanted.get("runAsUser", image.user), wanted.get("runAsGroup")


def powers_of(container: Json) -> Powers:
    context = container.get("securityContext") or {}
    capabilities = context.get("capabilities") or {}
    return Powers(
        added=tuple(capabilities.get("add") or ()),
        dropped=tuple(capabilities.get("drop") or ()),
        all=bool(context.get("privileged")),
        grow=context.get("allowPrivilegeEscalation") is not False,
    )


def _limits(container: Json) -> Limits:
    limits = (container.get("resources") or {}).get("limits") or {}
    return Limits(
        memory=whole(limits["memory"]) if "memory" in limits else None,
        cpu=milli(limits["cpu"]) / 1000 if "cpu" in limits else None,
    )


def further_groups(pod: Json) -> tuple[int, ...]:
    context = pod["spec"].get("securityContext") or {}
    wanted = [*(context.get("supplementalGroups") or []), context.get("fsGroup")]
    return tuple(dict.fromkeys(group for group in wanted if group is not None))


def _home(user: int | None) -> str:
    try:
        return pwd.getpwuid(os.getuid() if user is None else user).pw_dir
    except KeyError:
        return "/"
