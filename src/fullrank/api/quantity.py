"""Amounts as Kubernetes writes them: `500m`, `16Gi`, `2`, `1e3`; and back."""

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import TypeAlias

Quantity: TypeAlias = str | int | float

BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
SCALE: dict[str, Fraction] = {
    **{suffix: Fraction(scale) for suffix, scale in BINARY.items()},
    **{suffix: Fraction(10) ** power for suffix, power in DECIMAL.items()},
}
# Two digits of exponent are plenty, and keep `1e999999999` from filling the memory.
FORM = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,2})|([KMGTPE]i|[numkMGTPE]?))")
LARGEST = 2**63 - 1  # what Kubernetes can hold


@lru_cache(maxsize=4096)
def amount(quantity: Quantity) -> Fraction:
    """The exact amount; ValueError, with what is wrong, for what is not a quantity."""
    form = FORM.fullmatch(str(quantity))
    if form is None:
        raise ValueError(f'"{quantity}" is not a quantity such as 500m, 2 or 16Gi')
    number, exponent, suffix = form.groups()
    return Fraction(number) * (Fraction(10) ** int(exponent) if exponent else SCALE[suffix])


def whole(quantity: Quantity) -> int:
    """The amount in units, rounded up as Kubernetes does: bytes, devices."""
    return min(ceil(amount(quantity)), LARGEST)


def milli(quantity: Quantity) -> int:
    """The amount in thousandths, rounded up: what CPU is counted in."""
    return min(ceil(amount(quantity) * 1000), LARGEST)


def from_milli(thousandths: int) -> str:
    """`1500` is `1500m`, `2000` is `2`."""
    units, rest = divmod(thousandths, 1000)
    return f"{thousandths}m" if rest else str(units)


def from_bytes(count: int) -> str:
    """The shortest exact binary form: `17179869184` is `16Gi`."""
    for suffix, scale in reversed(BINARY.items()):
        if count and count % scale == 0:
            return f"{count // scale}{suffix}"
    return str(count)
