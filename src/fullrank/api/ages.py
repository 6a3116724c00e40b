"""How long ago, in as few letters as kubectl needs: `45s`, `3m20s`, `18m`, `5h12m`, `6d`."""

from datetime import datetime

from fullrank.api.meta import moment_of

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400
# A unit, the finer one, up to when the finer one is told as well, and from when the next unit takes over.
UNITS = (
    ((MINUTE, "m"), (1, "s"), 10 * MINUTE, 3 * HOUR),
    ((HOUR, "h"), (MINUTE, "m"), 8 * HOUR, 2 * DAY),
    ((DAY, "d"), (HOUR, "h"), 8 * DAY, 2 * YEAR),
    ((YEAR, "y"), (DAY, "d"), 8 * YEAR, 10**6 * YEAR),
)


def age_of(timestamp: object, now: datetime) -> str:
    if not isinstance(timestamp, str) or not timestamp:
        return "<unknown>"
    try:
        return human_duration((now - moment_of(timestamp)).total_seconds())
    except (ValueError, TypeError):  # not a time, or one without its zone
        return "<invalid>"


def human_duration(seconds: float) -> str:
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    whole = int(seconds)
    if whole < 2 * MINUTE:
        return f"{whole}s"
    (unit, letter), (finer_unit, finer_letter), finer_until, _ = next(
        each for each in UNITS if whole < each[-1]
    )
    count, rest = divmod(whole, unit)
    finer = rest // finer_unit if whole < finer_until else 0
    return f"{count}{letter}" + (f"{finer}{finer_letter}" if finer else "")
