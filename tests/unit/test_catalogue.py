import os
import shutil
import sys
from pathlib import Path

import anyio
import pytest

from fullrank.images.catalogue import BUILTIN, Image, ImageFailed, Images
from fullrank.images.entries import Entry, read_entry

pytestmark = pytest.mark.anyio

PATH = "/usr/local/bin:/usr/bin:/bin"
INTERPRETERS = os.path.dirname(os.path.realpath(sys.executable))


class Told(list[str]):
    async def __call__(self, line: str) -> None:
        self.append(line)


def images(home: Path, *, strict: bool = False) -> Images:
    environ = {"PATH": PATH, "HOME": str(home), "UV_CACHE_DIR": str(home / "cache")}
    return Images(home, environ=environ, strict=strict)


def describe(home: Path, name: str, text: str) -> None:
    (home / "images").mkdir(exist_ok=True)
    (home / "images" / name).write_text(text)


def name_environment(home: Path, name: str) -> Path:
    environment = home / "environments" / "named" / name
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(sys.executable)
    return environment


async def prepare(known: Images, reference: str, environment: str = "") -> Image:
    annotations = {"fullrank.dev/environment": environment} if environment else {}
    return await known.prepare(reference, annotations, Told())


@pytest.mark.parametrize("path", sorted(BUILTIN.glob("*.yaml")), ids=lambda path: path.name)
def test_builtin_entries_are_without_complaint(path: Path) -> None:
    assert isinstance(read_entry(path), Entry)


async def test_an_unknown_image_runs_in_the_environment_fullrank_was_started_from(tmp_path: Path) -> None:
    told = Told()
    image = await images(tmp_path).prepare("example/none:1", {}, told)
    assert image == Image("example/none:1", {"PATH": f"{sys.prefix}/bin:{PATH}"}, folders=image.folders)
    assert image.folders[0] == Path(sys.prefix)
    assert len(told) == 1
    assert "example/none:1 is not in the catalogue" in told[0]


async def test_an_unknown_image_fails_where_images_are_strict(tmp_path: Path) -> None:
    with pytest.raises(ImageFailed, match=r"example/none:1 is not in the catalogue.*images/NAME\.yaml"):
        await prepare(images(tmp_path, strict=True), "example/none:1")


async def test_an_entry_of_the_home_wins_over_a_builtin_one(tmp_path: Path) -> None:
    describe(tmp_path, "mine.yaml", "images: ['alpine:*']\nenv: {MINE: 'yes'}")
    image = await prepare(images(tmp_path), "docker.io/library/alpine:3.10")
    assert image.env == {"MINE": "yes", "PATH": PATH}


async def test_a_broken_file_hides_no_other_and_is_named(tmp_path: Path) -> None:
    describe(tmp_path, "a.yaml", "images: [")
    describe(tmp_path, "b.yaml", "images: ['example/train:*']\nuser: 7")
    known = images(tmp_path)
    assert (await prepare(known, "example/train:1")).user == 7
    told = Told()
    await known.prepare("example/none:1", {}, told)
    assert f"not read: {tmp_path}/images/a.yaml: is not YAML" in told[0]


async def test_a_changed_catalogue_is_read_again(tmp_path: Path) -> None:
    known = images(tmp_path, strict=True)
    with pytest.raises(ImageFailed):
        await prepare(known, "example/train:1")
    describe(tmp_path, "train.yaml", "images: ['example/train:*']\nworkingDir: /a")
    assert (await prepare(known, "example/train:1")).working_dir == "/a"
    describe(tmp_path, "train.yaml", "images: ['example/train:*']\nworkingDir: /other")
    assert (await prepare(known, "example/train:1")).working_dir == "/other"


async def test_files_are_laid_out_as_in_the_image_with_their_modes(tmp_path: Path) -> None:
    describe(tmp_path, "tool.sh", "echo one")
    describe(
        tmp_path,
        "x.yaml",
        "images: [x]\nfiles: {/opt/bin/tool: {source: tool.sh, mode: '0755'}, /etc/t: tool.sh}",
    )
    known = images(tmp_path)
    first = await prepare(known, "x")
    assert [(target, oct(source.stat().st_mode & 0o777)) for target, source, _ in first.files] == [
        ("/opt/bin/tool", "0o755"), ("/etc/t", "0o644"),
    ]  # fmt: skip
    tool = first.files[0][1]
    assert str(tool).endswith("/opt/bin/tool")
    assert first.env["PATH"] == f"{tool.parent}:{PATH}"

    describe(tmp_path, "tool.sh", "echo two")
    second = await prepare(known, "x")
    assert tool.read_text() == "echo one"
    assert second.files[0][1].read_text() == "echo two"


async def test_files_are_read_again_only_when_one_of_them_has_changed(tmp_path: Path) -> None:
    describe(tmp_path, "a.yaml", "images: [example/a:1]\nfiles: {/opt/a.py: a.py}\n")
    describe(tmp_path, "b.yaml", "images: [example/b:1]\nfiles: {/opt/b.py: a.py}\n")
    source = tmp_path / "images" / "a.py"
    source.write_text("one")
    known = images(tmp_path)
    first = (await prepare(known, "example/a:1")).files[0][1]
    times = source.stat().st_mtime_ns
    source.write_text("two")
    os.utime(source, ns=(times, times))  # nothing shows that it has changed, so nobody reads it
    assert (await prepare(known, "example/a:1")).files[0][1] == first
    (other,) = (await prepare(known, "example/b:1")).files
    assert (other[0], other[1].read_text()) == ("/opt/b.py", "two")
    source.write_text("three")
    (changed,) = (await prepare(known, "example/a:1")).files
    assert (changed[1].read_text(), first.read_text()) == ("three", "one")


async def test_a_named_environment_takes_the_place_of_the_entrys_own(tmp_path: Path) -> None:
    environment = name_environment(tmp_path, "mine")
    image = await prepare(images(tmp_path), "kubeflowkatib/pytorch-mnist:v1", "mine")
    assert image.env["PATH"] == f"{environment}/bin:{PATH}"
    assert [target for target, _, _ in image.files] == ["/opt/pytorch-mnist/mnist.py"]


async def test_an_image_names_the_folders_that_a_program_needs_whoever_runs_it(tmp_path: Path) -> None:
    describe(tmp_path, "tool.py", "")
    describe(tmp_path, "x.yaml", "images: [x]\nfiles: {/opt/x/tool.py: tool.py}")
    environment = name_environment(tmp_path, "mine")
    image = await prepare(images(tmp_path), "x", "mine")
    _, tool, _ = image.files[0]
    laid_out, *made_of = image.folders
    assert tool == laid_out / "opt/x/tool.py"
    assert made_of[0] == environment
    assert str(made_of[-1] / "bin") == INTERPRETERS


async def test_modules_of_an_image_are_found_also_where_its_files_are_not_at_their_paths(
    tmp_path: Path,
) -> None:
    describe(tmp_path, "tool.py", "")
    describe(
        tmp_path,
        "x.yaml",
        "images: [x]\nfiles: {/opt/x/tool.py: tool.py}\nenv: {PYTHONPATH: '/opt/x:/opt/other'}",
    )
    image = await prepare(images(tmp_path), "x")
    _, tool, _ = image.files[0]
    assert image.env["PYTHONPATH"] == f"{tool.parent}:/opt/other"


NAMES = {
    "a missing environment says how to make it": (
        "other",
        r"there are mine\); make it with `fullrank env create other -r",
    ),
    "a name cannot climb": ("../mine", "is not a name"),
    "a name is not a path": ("a/b", "is not a name"),
}


@pytest.mark.parametrize(("name", "message"), NAMES.values(), ids=NAMES.keys())
async def test_an_environment_that_cannot_be_had(tmp_path: Path, name: str, message: str) -> None:
    name_environment(tmp_path, "mine")
    with pytest.raises(ImageFailed, match=message):
        await prepare(images(tmp_path), "x", name)


async def test_the_plain_python_image_is_an_interpreter_with_nothing_installed(tmp_path: Path) -> None:
    image = await prepare(images(tmp_path), "python:3.11-slim")
    found = shutil.which("python3", path=image.env["PATH"])
    assert found
    assert Path(found).is_relative_to(tmp_path / "environments")
    asked = await anyio.run_process([found, "-c", "import yaml"], check=False)
    assert b"ModuleNotFoundError" in asked.stderr


LOOKUPS = {
    "a known name": ("localhost", 0, "Name:\tlocalhost\nAddress: "),
    "a name nobody knows": ("nobody.invalid", 1, "** server can't find nobody.invalid: NXDOMAIN\n"),
    "an address": ("127.9.8.7", 0, "Name:\t127.9.8.7\nAddress: 127.9.8.7\n"),
}


@pytest.mark.skipif(not shutil.which("getent"), reason="needs getent")
@pytest.mark.parametrize(("name", "code", "text"), LOOKUPS.values(), ids=LOOKUPS.keys())
async def test_alpines_nslookup_answers(tmp_path: Path, name: str, code: int, text: str) -> None:
    image = await prepare(images(tmp_path), "alpine:3.10")
    found = shutil.which("nslookup", path=image.env["PATH"])
    assert found
    asked = await anyio.run_process([found, name], env=image.env, check=False)
    assert asked.returncode == code
    assert asked.stdout.startswith(b"Server:\t\t")
    assert text in asked.stdout.decode()
    assert os.access(shutil.which("seq", path=image.env["PATH"]) or "", os.X_OK)
