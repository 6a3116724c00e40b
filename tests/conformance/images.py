"""The images that Kubernetes' tests name, as entries of a home's catalogue: one program of theirs, and shell tools."""

import shutil
from pathlib import Path

import yaml

REGISTRY = "registry.k8s.io"


def furnish(home: Path, assets: Path) -> None:
    """Puts `agnhost` and, where this machine has it, `busybox` where pods will find them."""
    folder = home / "images"
    folder.mkdir(parents=True, exist_ok=True)
    programs = {name: shutil.which(name, path=f"{assets}:/bin:/usr/bin") for name in ("agnhost", "busybox")}
    for name, found in programs.items():
        if found is not None:
            shutil.copyfile(found, folder / name)
    shell = {"/bin/sh": {"source": "busybox", "mode": "0755"}} if programs["busybox"] else {}
    agnhost = {"source": "agnhost", "mode": "0755"}
    entries = {
        "agnhost": {
            "images": [f"{REGISTRY}/e2e-test-images/agnhost:*"],
            "files": {"/agnhost": agnhost, "/agnhost-2": agnhost},
            "entrypoint": ["/agnhost"],
            "command": ["pause"],
        },
        "pause": {
            "images": [f"{REGISTRY}/pause:*"],
            "files": {"/agnhost": agnhost},
            "entrypoint": ["/agnhost", "pause"],
        },
        "busybox": {
            "images": [f"{REGISTRY}/e2e-test-images/busybox:*"],
            "files": shell,
            "command": ["sh"],
        },
    }
    for name, entry in entries.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(entry))
