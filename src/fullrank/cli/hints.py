"""What went wrong, where, and what to do next: every error a user sees passes here."""

from fullrank.errors import (
    AlreadyExists,
    BadRequest,
    FullrankError,
    Invalid,
    NotFound,
    Unauthorized,
    Unavailable,
)

EXIT_CODES: tuple[tuple[type[FullrankError], int], ...] = (
    (Invalid, 2),
    (BadRequest, 2),
    (Unauthorized, 3),
    (Unavailable, 3),
    (FullrankError, 1),
)


def expected(error: FullrankError | ExceptionGroup[Exception]) -> FullrankError:
    """The error that a user can do something about; anything else is our own mistake and goes on as it is."""
    if isinstance(error, FullrankError):
        return error
    ours = error.subgroup(FullrankError)
    if ours is None:
        raise error
    first: Exception = ours
    while isinstance(first, ExceptionGroup):
        first = first.exceptions[0]
    assert isinstance(first, FullrankError)
    return first


def exit_code(error: FullrankError) -> int:
    return next(code for kind, code in EXIT_CODES if isinstance(error, kind))


def explain(error: FullrankError) -> str:
    lines = [f"error: {error}"]
    if isinstance(error, Invalid):
        lines = [f"error: {error.what} was not accepted"]
        lines += [f"  {cause.field}: {cause.message}" for cause in error.causes]
        lines += [f"hint: {cause.field}: {cause.hint}" for cause in error.causes if cause.hint]
    elif hint := _hint(error):
        lines.append(f"hint: {hint}")
    return "\n".join(lines)


def _hint(error: FullrankError) -> str:
    text = str(error)
    if isinstance(error, NotFound) and text.startswith("namespaces "):
        name = text.split('"')[1]
        return f"make it first: kubectl create namespace {name}"
    if isinstance(error, AlreadyExists):
        return "give the job another name, or delete the old one first"
    if isinstance(error, Unavailable):
        return "is it running? `fullrank status` tells, `fullrank up` starts it"
    return ""
