"""What a TensorBoard is told: the spec of `tensorstack.dev/v1beta1` TensorBoards, which jobs may carry inside."""

import re
from collections.abc import Iterator
from posixpath import normpath
from typing import NamedTuple

from fullrank.api.meta import Json
from fullrank.api.names import subdomain
from fullrank.api.schema import array, boolean, core_schema, did_you_mean, integer, obj, string
from fullrank.errors import Cause

SCHEDULER = obj(
    {
        "t9kScheduler": obj(
            {
                "queue": string(description="The queue to wait in."),
                "priority": integer(minimum=0, description="0 to 100; 0 if left out."),
            }
        )
    },
    description="Where to wait for a place, and how urgently; without it, the home's own order.",
)

TENSORBOARD_SPEC = obj(
    {
        "trainingLogFilesets": array(string(), description="Where the logs are: t9k://pvc/<claim>/<folder>."),
        "logDir": obj(
            {
                "pvc": array(
                    obj(
                        {
                            "name": string(description="The claim."),
                            "subPath": array(
                                string(), description="Folders in it; the whole claim without any."
                            ),
                        },
                        required=("name",),
                    ),
                    description="Where the logs are.",
                ),
                "s3": obj({"secretRef": obj({"name": string()}), "uri": array(string())}),
                "http": obj({"url": array(string())}),
            }
        ),
        "image": string(description="Any image with TensorBoard in it; one that is just that if left out."),
        "resources": core_schema("ResourceRequirements"),
        "suspend": boolean(description="True stops the server and keeps everything else."),
        "scheduler": SCHEDULER,
    },
    description="A TensorBoard that shows what the job logs.",
)

URL = re.compile(
    r"(?P<scheme>[a-z0-9+.-]+)://(?P<storage>[^/]*)/?(?P<identity>[^/]*)/?(?P<path>.*)", re.DOTALL
)
FORM = "t9k://pvc/<claim>/<folder>"
ELSEWHERE = "only logs in claims can be shown: copy them into one"


class Fileset(NamedTuple):
    """A folder in a claim, or all of it."""

    claim: str
    path: str = ""

    @property
    def mount(self) -> str:
        return f"/fileset-pvc-{self.claim}"

    @property
    def folder(self) -> str:
        return f"{self.mount}/{self.path}" if self.path else self.mount

    @property
    def title(self) -> str:
        """What its runs are listed under, beside those of others."""
        return f"{self.claim}/{self.path}" if self.path else self.claim


def filesets(spec: Json) -> tuple[Fileset, ...]:
    """Each once, in the order written."""
    found = [_fileset(one) for one in spec.get("trainingLogFilesets") or ()]
    for claim in (spec.get("logDir") or {}).get("pvc") or ():
        found += [Fileset(claim["name"], _clean(path)) for path in claim.get("subPath") or [""]]
    return tuple(dict.fromkeys(one for one in found if one is not None))


def _fileset(url: str) -> Fileset | None:
    parts = URL.fullmatch(url)
    return Fileset(parts["identity"], _clean(parts["path"])) if parts else None


def _clean(path: str) -> str:
    """`./log/` is `log`."""
    return normpath(f"/{path}").strip("/")


def board_complaints(spec: Json, path: str) -> list[Cause]:
    found = [
        cause
        for index, url in enumerate(spec.get("trainingLogFilesets") or ())
        for cause in _about_url(url, f"{path}.trainingLogFilesets[{index}]")
    ]
    found += _about_folders(spec.get("logDir") or {}, f"{path}.logDir")
    if found:
        return found
    shown = filesets(spec)
    if not shown:
        field = f"{path}.trainingLogFilesets"
        return [Cause(field, "Required value: no logs to show", "FieldValueRequired", f"add {FORM}")]
    if len(shown) > 1:
        # TensorBoard is given several folders in one word, with commas between them.
        for one in (one for one in shown if "," in one.path):
            problem = (
                f'Invalid value: "{one.path}": beside other folders, one may not have a comma in its name'
            )
            found.append(Cause(path, problem, hint="show the folder that it is in, or nothing else"))
    return found


def _about_url(url: str, field: str) -> Iterator[Cause]:
    wrong = f'Invalid value: "{url}"'
    parts = URL.fullmatch(url)
    if parts is None:
        meant = url.lstrip("./") or "<claim>/<folder>"
        yield Cause(field, f"{wrong}: must have the form {FORM}", hint=f"t9k://pvc/{meant}?")
    elif parts["scheme"] != "t9k":
        yield Cause(field, f"{wrong}: must begin with t9k://, not {parts['scheme']}://", hint=ELSEWHERE)
    elif parts["storage"] == "minio":
        yield Cause(field, f"{wrong}: MinIO is not read here", "FieldValueNotSupported", ELSEWHERE)
    elif parts["storage"] != "pvc":
        hint = did_you_mean(parts["storage"], ("pvc",)) or f"the form is {FORM}"
        yield Cause(
            field, f'{wrong}: storage "{parts["storage"]}" is not "pvc"', "FieldValueNotSupported", hint
        )
    else:
        yield from _about_claim(parts["identity"], field, f"{wrong}: ")
        yield from _about_path(parts["path"], field)


def _about_folders(sources: Json, field: str) -> Iterator[Cause]:
    for index, one in enumerate(sources.get("pvc") or ()):
        place = f"{field}.pvc[{index}]"
        yield from _about_claim(one["name"], f"{place}.name")
        for number, path in enumerate(one.get("subPath") or ()):
            yield from _about_path(path, f"{place}.subPath[{number}]")
    for name in ("s3", "http"):
        if sources.get(name):
            yield Cause(
                f"{field}.{name}", f"Forbidden: {name} is not read here", "FieldValueForbidden", ELSEWHERE
            )


def _about_claim(claim: str, field: str, wrong: str = "") -> Iterator[Cause]:
    if not claim:
        yield Cause(field, f"{wrong or 'Required value: '}names no claim", hint=f"the form is {FORM}")
        return
    wrong = wrong or f'Invalid value: "{claim}": '
    for problem in subdomain(claim):
        yield Cause(field, f"{wrong}the name of a claim: {problem}")


def _about_path(path: str, field: str) -> Iterator[Cause]:
    if ".." in path.split("/"):
        yield Cause(field, f'Invalid value: "{path}": must not contain ".."', hint="a folder in the claim")
