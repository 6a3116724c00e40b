"""What pip was told, what uv says, which PyTorch to take: the pure parts of building environments."""

from pathlib import Path

import pytest

from fullrank.images.pip_settings import local_folders, pip_settings, uv_arguments, uv_variables
from fullrank.images.torch_choice import asks_for_a_build, cpu_wheel_version, has_nvidia_gpu
from fullrank.images.uv_output import answer, progress_line

RECORDED = {
    "Using Python 3.11.7 environment at: v3": "",
    "Resolved 7 packages in 1.04s": "resolved 7 packages",
    "Resolved 1 package in 238ms": "resolved 1 package",
    "Downloading scikit-learn (8.9MiB)": "downloading scikit-learn (8.9MiB)",
    " Downloaded scikit-learn": "downloaded scikit-learn",
    "   Building docopt==0.6.2": "building docopt 0.6.2",
    "      Built docopt==0.6.2": "built docopt 0.6.2",
    "   Building mine @ file:///tmp/mine": "building mine",
    "Prepared 7 packages in 1.32s": "fetched 7 packages, installing",
    "Installed 7 packages in 65ms": "installed 7 packages, compiling",
    "Bytecode compiled 7391 files in 15.20s": "compiled 7391 files",
    " + torch==2.13.0+cpu": "",
    "error: No solution found when resolving dependencies": "",
}


@pytest.mark.parametrize(("line", "expected"), RECORDED.items(), ids=RECORDED.keys())
def test_uvs_lines_become_ours(line: str, expected: str) -> None:
    assert progress_line(line) == expected


def test_the_answer_is_the_reason_without_progress_and_passwords() -> None:
    assert answer([
        "Using Python 3.11.7 environment at: v1",
        "Resolved 7 packages in 1.04s",
        "error: Request failed after 3 retries in 8.3s",
        "  cause: Failed to fetch: https://me:secret@index.example/simple/torch/",
        "",
    ]) == (
        "error: Request failed after 3 retries in 8.3s\n"
        "  cause: Failed to fetch: https://index.example/simple/torch/"
    )  # fmt: skip


def test_the_answer_is_not_longer_than_a_screen() -> None:
    assert answer(f"line {number}" for number in range(100)).splitlines() == [
        f"line {n}" for n in range(88, 100)
    ]


def conf(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_pips_files_and_variables_are_read_in_pips_order(tmp_path: Path) -> None:
    conf(tmp_path / "xdg/pip/pip.conf", "[global]\nindex-url = a\nfind_links = one\n  two\ncert = c\n")
    conf(tmp_path / "home/.config/pip/pip.conf", "[global]\nindex-url = b\nproxy = p\n[install]\nproxy = q\n")
    conf(tmp_path / "prefix/pip.conf", "[global]\nproxy = r\nindex-url = d\n")
    environ = {
        "HOME": str(tmp_path / "home"),
        "XDG_CONFIG_DIRS": str(tmp_path / "xdg"),
        "PIP_CERT": "e",
        "PIP_INDEX_URL": "",
    }
    settings = pip_settings(environ, tmp_path / "prefix")
    assert settings["index-url"] == "d"
    assert settings["proxy"] == "q"
    assert settings["find-links"].split() == ["one", "two"]
    assert settings["cert"] == "e"


def test_a_file_named_by_a_variable_stands_in_for_the_users_own(tmp_path: Path) -> None:
    conf(tmp_path / ".config/pip/pip.conf", "[global]\nindex-url = user\nproxy = p\n")
    named = conf(tmp_path / "named.conf", "[global]\nindex-url = named\n")
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path), "PIP_CONFIG_FILE": str(named)}
    settings = pip_settings(environ, tmp_path)
    assert settings["index-url"] == "named"
    assert "proxy" not in settings


@pytest.mark.parametrize("text", ["no section", "[global\n", "[global]\nx"])
def test_a_broken_file_tells_nothing(tmp_path: Path, text: str) -> None:
    named = conf(tmp_path / "pip.conf", text)
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path), "PIP_CONFIG_FILE": str(named)}
    assert "x" not in pip_settings(environ, tmp_path)


def test_settings_become_uvs_variables_and_places_that_are_gone_are_left_out(tmp_path: Path) -> None:
    certificate = conf(tmp_path / "ca.pem", "")
    settings = {
        "index-url": "https://a:b@index.example/simple",
        "extra-index-url": f"file://{tmp_path} file:///gone/simple https://more.example/simple",
        "find-links": f"{tmp_path} /gone https://wheels.example/",
        "trusted-host": "index.example",
        "no-index": "true",
        "cert": str(certificate),
    }
    assert uv_variables(settings, {}) == {
        "UV_DEFAULT_INDEX": "https://a:b@index.example/simple",
        "UV_INDEX": f"file://{tmp_path} https://more.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": f"{tmp_path},https://wheels.example/",
        "UV_INSECURE_HOST": "index.example",
        "SSL_CERT_FILE": str(certificate),
    }
    assert uv_arguments(settings) == ("--no-index",)
    assert local_folders(f"{tmp_path},https://wheels.example/,file://{tmp_path}") == [tmp_path, tmp_path]


def test_what_the_environment_tells_uv_stays() -> None:
    assert (
        uv_variables({"index-url": "https://pip.example"}, {"UV_DEFAULT_INDEX": "https://uv.example"}) == {}
    )


WHEELS = (
    "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl",
    "torch-2.9.1+cpu-cp311-cp311-manylinux_2_28_x86_64.whl",
    "torch-2.14.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl",
    "torch-2.15.0+cpu-cp311-cp311-manylinux_2_28_aarch64.whl",
    "torch-2.16.0-cp311-cp311-manylinux_2_28_x86_64.whl",
    "torchvision-0.28.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl",
)
CHOICES = {
    "a pin takes its own wheel": (["torch==2.9.1", "numpy"], "2.9.1+cpu"),
    "a pin with a marker too": (["torch == 2.13.0 ; python_version > '3'"], "2.13.0+cpu"),
    "a pin without a wheel takes none": (["torch==2.10.0"], ""),
    "no pin takes the newest": (["torch>=2"], "2.13.0+cpu"),
    "torch may come with another package": (["accelerate"], "2.13.0+cpu"),
    "torchmetrics is not torch": (["torchmetrics==2.9.1"], "2.13.0+cpu"),
}


@pytest.mark.parametrize(("requirements", "expected"), CHOICES.values(), ids=CHOICES.keys())
def test_the_cpu_wheel_at_hand_is_chosen(requirements: list[str], expected: str) -> None:
    assert cpu_wheel_version(requirements, WHEELS, "3.11", "x86_64") == expected


BUILDS = {
    "torch==2.13.0": False,
    "torch": False,
    "torch==2.13.0+cu130": True,
    "torch @ https://example.com/torch.whl": True,
    "torchvision==0.28.0+cu130": False,
    "numpy==1.0+mine": False,
}


@pytest.mark.parametrize(("line", "expected"), BUILDS.items(), ids=BUILDS.keys())
def test_who_names_a_build_gets_it(line: str, expected: bool) -> None:
    assert asks_for_a_build(["six", line]) is expected


def test_a_gpu_is_known_by_its_driver(tmp_path: Path) -> None:
    assert not has_nvidia_gpu(tmp_path)
    conf(tmp_path / "proc/driver/nvidia/version", "NVRM")
    assert has_nvidia_gpu(tmp_path)
