"""GPUs of a machine: what is found, what is offered, what a container sees."""

from pathlib import Path
from typing import Any

import pytest

from fullrank.agent.devices import annotations_for, device_variables, gpus_of, parsed, resources_of
from fullrank.api.annotations import DEVICES
from fullrank.api.devices import cards_of
from fullrank.api.meta import Json


def a_pod(devices: str, *containers: dict[str, int], init: dict[str, int] | None = None) -> Json:
    def container(name: str, limits: dict[str, int]) -> Json:
        return {"name": name, "resources": {"limits": {f"nvidia.com/{key}": n for key, n in limits.items()}}}

    spec: dict[str, Any] = {"containers": [container(f"c{n}", one) for n, one in enumerate(containers)]}
    if init is not None:
        spec["initContainers"] = [container("init", init)]
    return {"metadata": {"name": "p", "annotations": {DEVICES: devices} if devices else {}}, "spec": spec}


def seen(pod: Json) -> list[str]:
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
    return [device_variables(pod, one)["CUDA_VISIBLE_DEVICES"] for one in containers]


SEEN = {
    "a container sees the very card it was given": (a_pod("GPU-b", {"gpu": 1}), ["GPU-b"]),
    "containers take theirs in their order": (
        a_pod("GPU-a,GPU-b,GPU-c", {"gpu": 1}, {"gpu": 2}),
        ["GPU-a", "GPU-b,GPU-c"],
    ),
    "whole cards come first": (a_pod("GPU-a,GPU-b", {"vgpu": 1}, {"gpu": 1}), ["GPU-b", "GPU-a"]),
    "who asked for none sees none": (a_pod("GPU-a", {"gpu": 1}, {}), ["GPU-a", ""]),
    "pretended cards are not seen": (a_pod("fake-0,fake-1", {"gpu": 2}), [""]),
    "who was given none sees none": (a_pod("", {"gpu": 1}), [""]),
    "an init container has its turn with them": (a_pod("GPU-a", {"gpu": 1}, init={"gpu": 1}), ["GPU-a"] * 2),
}


@pytest.mark.parametrize(("pod", "cards"), SEEN.values(), ids=SEEN.keys())
def test_containers_see(pod: Json, cards: list[str]) -> None:
    assert seen(pod) == cards


def test_a_part_of_a_card_comes_with_its_limits() -> None:
    pod = a_pod("GPU-a", {"vgpu": 1, "gpumem": 5000, "gpucores": 30})
    assert device_variables(pod, pod["spec"]["containers"][0]) == {
        "CUDA_VISIBLE_DEVICES": "GPU-a",
        "NVIDIA_VISIBLE_DEVICES": "GPU-a",
        "CUDA_DEVICE_MEMORY_LIMIT_0": "5000m",
        "CUDA_DEVICE_SM_LIMIT": "30",
    }


def test_cards_are_found_by_what_the_driver_says() -> None:
    assert parsed("GPU-5c3e, 81559\nGPU-77aa, [N/A]\n\n") == {"GPU-5c3e": 81559, "GPU-77aa": 0}


def test_without_the_drivers_word_the_kernels_files_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("nvidia0", "nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert gpus_of("auto", tmp_path) == {"0": 0, "2": 0, "10": 0}
    assert gpus_of("none", tmp_path) == {}


def test_what_a_node_says_of_its_cards_can_be_read_back() -> None:
    cards = gpus_of("fake:2")
    assert resources_of(cards)["nvidia.com/gpu"] == "2"
    assert cards_of({"metadata": {"annotations": annotations_for(cards)}}) == cards
    assert resources_of({}) == {}
    assert cards_of({"metadata": {"annotations": {DEVICES: "nonsense"}}}) is None
