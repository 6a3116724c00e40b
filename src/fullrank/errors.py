"""Everything that can go wrong, by whose fault it is; the class decides what happens next.

    FullrankError
    ├── BadRequest      the caller's   400  malformed JSON, bad selector    CLI: told, exit 2
    │   ├── Unsupported                415  a body type we do not take
    │   └── TooLarge                   413  more bytes than we read
    ├── Unauthorized    the caller's   401  no or wrong credentials         CLI: told, exit 3
    ├── Forbidden       the caller's   403  slow retry in a reconcile       CLI: told, exit 1
    ├── NotFound        nobody's       404  nothing to do in a reconcile    CLI: told, exit 1
    ├── NotAllowed      the caller's   405  a verb this object lacks
    ├── NotAcceptable   the caller's   406  a form we do not answer in
    ├── Conflict        a race         409  look again at once
    │   ├── AlreadyExists              409  somebody was first
    │   └── ApplyConflict              409  others own what was applied
    ├── Gone            time's         410  list again
    ├── Invalid         the caller's   422  condition, no retry             CLI: each path on a line, exit 2
    └── Unavailable     the world's    503  back off                        CLI: "cannot reach …", exit 3

Anything else is our own bug: 500, logged with its traceback, never hidden.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

CauseReason = Literal[
    "FieldValueRequired", "FieldValueInvalid", "FieldValueNotSupported", "FieldValueForbidden", "FieldValueDuplicate",
    "FieldValueTypeInvalid", "FieldValueTooLong", "FieldManagerConflict",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that is wrong with one field, and what to do about it."""

    field: str
    message: str
    reason: CauseReason = "FieldValueInvalid"
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.field}: {self.message}"
        return f"{text} ({self.hint})" if self.hint else text


class FullrankError(Exception):
    """The root: `code` and `reason` are what a Kubernetes client reads in a Status."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"


class BadRequest(FullrankError):
    code, reason = 400, "BadRequest"


class Unsupported(BadRequest):
    code, reason = 415, "UnsupportedMediaType"


class TooLarge(BadRequest):
    code, reason = 413, "RequestEntityTooLarge"


class Unauthorized(FullrankError):
    code, reason = 401, "Unauthorized"


class Forbidden(FullrankError):
    code, reason = 403, "Forbidden"


class NotFound(FullrankError):
    code, reason = 404, "NotFound"


class NotAllowed(FullrankError):
    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(FullrankError):
    code, reason = 406, "NotAcceptable"


class Conflict(FullrankError):
    code, reason = 409, "Conflict"


class AlreadyExists(Conflict):
    code, reason = 409, "AlreadyExists"


class ApplyConflict(Conflict):
    """A configuration would change fields that others own: whose they are, one by one."""

    def __init__(self, message: str, causes: Sequence[Cause]) -> None:
        super().__init__(message)
        self.causes = tuple(causes)


class Gone(FullrankError):
    """What was asked for is too old; `proceed` leads on from there to what is there now, where that makes sense."""

    code, reason = 410, "Expired"

    def __init__(self, message: str, proceed: str = "") -> None:
        super().__init__(message)
        self.proceed = proceed


class Unavailable(FullrankError):
    code, reason = 503, "ServiceUnavailable"


class Invalid(FullrankError):
    """An object that cannot be accepted: every complaint at once, each with its path."""

    code, reason = 422, "Invalid"

    def __init__(self, what: str, causes: Sequence[Cause]) -> None:
        self.what = what
        self.causes = tuple(causes)
        listed = ", ".join(str(cause) for cause in self.causes)
        super().__init__(f"{what} is invalid: {f'[{listed}]' if len(self.causes) > 1 else listed}")
