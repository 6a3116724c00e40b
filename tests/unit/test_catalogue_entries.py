from pathlib import Path

import pytest

from fullrank.images.entries import Complaint, Entry, File, Recipe, canonical, read_entry

SAME_IMAGE = {
    "docker hub's own images": ("alpine:1", "docker.io/library/alpine:1", "docker.io/alpine:1", "library/alpine:1"),
    "docker hub's other images": ("kubeflowkatib/pytorch-mnist:v1", "docker.io/kubeflowkatib/pytorch-mnist:v1"),
    "no tag means latest": ("alpine", "alpine:latest", "docker.io/library/alpine"),
    "a port is not a tag": ("localhost:5000/train", "localhost:5000/train:latest"),
    "a tag says more than its digest": ("alpine:3.10", "alpine:3.10@sha256:abc"),
    "a library of somebody else is not docker hub's": ("quay.io/library/alpine", "quay.io/library/alpine:latest"),
}  # fmt: skip


@pytest.mark.parametrize("names", SAME_IMAGE.values(), ids=SAME_IMAGE.keys())
def test_an_image_has_one_spelling(names: tuple[str, ...]) -> None:
    assert len({canonical(name) for name in names}) == 1


MATCHES = {
    "any tag": ("alpine:*", "docker.io/library/alpine:3.10", True),
    "a digest is a tag of a kind": ("alpine:*", "alpine@sha256:abc", True),
    "a pattern with the prefix": ("docker.io/kubeflowkatib/pytorch-mnist:*", "kubeflowkatib/pytorch-mnist:v1", True),
    "part of a tag": ("python:3.*-slim", "python:3.11-slim", True),
    "another image": ("alpine:*", "alpine-extra:3.10", False),
    "the same name in another registry": ("alpine:*", "quay.io/alpine:3.10", False),
    "no tag matches the latest only": ("alpine", "alpine:3.10", False),
    "case counts": ("train:A", "train:a", False),
}  # fmt: skip


@pytest.mark.parametrize(("pattern", "reference", "expected"), MATCHES.values(), ids=MATCHES.keys())
def test_a_pattern_matches(pattern: str, reference: str, expected: bool) -> None:
    assert Entry(Path("x.yaml"), (pattern,)).matches(reference) is expected


def read(folder: Path, text: str) -> Entry | list[Complaint]:
    (folder / "script.py").write_text("print('hello')\n")
    (folder / "x.yaml").write_text(text)
    return read_entry(folder / "x.yaml")


def test_an_entry_is_read_with_all_it_says(tmp_path: Path) -> None:
    entry = read(
        tmp_path,
        """
        images: ["example/train:*"]
        environment: {python: "3.11", requirements: [six==1.17.0]}
        files:
          /opt/a.py: script.py
          /usr/bin/a: {source: script.py, mode: 0755}
          /usr/bin/b: {source: script.py, mode: "0700"}
        env: {A: "1"}
        entrypoint: [python3]
        command: [/opt/a.py]
        user: 1000
        workingDir: /opt
        """,
    )
    assert entry == Entry(
        origin=tmp_path / "x.yaml",
        patterns=("example/train:*",),
        recipe=Recipe(("six==1.17.0",), "3.11"),
        files=(
            File("/opt/a.py", tmp_path / "script.py", 0o644),
            File("/usr/bin/a", tmp_path / "script.py", 0o755),
            File("/usr/bin/b", tmp_path / "script.py", 0o700),
        ),
        env={"A": "1"},
        entrypoint=("python3",),
        command=("/opt/a.py",),
        user=1000,
        working_dir="/opt",
    )


BROKEN = {
    "not YAML": ("images: [", ["is not YAML: "]),
    "not a mapping": ("- alpine", ["must be a mapping"]),
    "empty": ("", ["must be a mapping"]),
    "binary": ("images: [a]\nenv: {A: \0}", ["is not YAML: "]),
    "no images": ("env: {A: b}", ["images: is required"]),
    "images as a text": ("images: alpine", ["images: must be a list of strings, is 'alpine'"]),
    "a field of another name": ("images: [a]\nenvironement: {}", ["environement: is not a field of an entry"]),
    "a version that YAML takes for a number": (
        "images: [a]\nenvironment: {python: 3.10}",
        ['environment.python: must be a version such as "3.11", in quotes, is 3.1'],
    ),
    "an option among the requirements": (
        "images: [a]\nenvironment: {requirements: [--pre]}", ["environment.requirements[0]: must name a package"]
    ),
    "a field of another name in the environment": (
        "images: [a]\nenvironment: {packages: []}", ["environment.packages: is not a field of an environment"]
    ),
    "a variable that is a number": ("images: [a]\nenv: {A: 1}", ["env.A: must be a string, is 1: put it in quotes"]),
    "a relative target": ("images: [a]\nfiles: {opt/x: script.py}", ["files[opt/x]: must be an absolute path"]),
    "a target that climbs": ("images: [a]\nfiles: {/a/../x: script.py}", ["files[/a/../x]: must be an absolute path"]),
    "a source elsewhere": ("images: [a]\nfiles: {/x: ../script.py}", ["files[/x]: must stay in the folder of x.yaml"]),
    "a source that is gone": ("images: [a]\nfiles: {/x: none.py}", ["files[/x]: names 'none.py', and there is no"]),
    "a file without a source": ("images: [a]\nfiles: {/x: {mode: '0644'}}", ["files[/x].source: must name a file"]),
    "a mode that is none": (
        "images: [a]\nfiles: {/x: {source: script.py, mode: rwx}}", ["files[/x].mode: must be an octal mode"]
    ),
    "a user by name": ("images: [a]\nuser: root", ["user: must be a user's number, is 'root'"]),
    "a working directory that is relative": ("images: [a]\nworkingDir: opt", ["workingDir: must be an absolute path"]),
    "all of it at once": (
        "command: sh\nuser: -1\nenv: []",
        ["images: is required", "env: must be a mapping", "command: must be a list", "user: must be a user's number"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), BROKEN.values(), ids=BROKEN.keys())
def test_every_complaint_names_file_and_path(tmp_path: Path, text: str, expected: list[str]) -> None:
    complaints = read(tmp_path, text)
    assert isinstance(complaints, list)
    assert len(complaints) == len(expected)
    for complaint, start in zip(complaints, expected, strict=True):
        assert str(complaint).startswith(f"{tmp_path / 'x.yaml'}: {start}")
