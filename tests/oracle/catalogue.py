"""All cases."""

from collections.abc import Mapping

from tests.oracle.cases import USUAL, Case
from tests.oracle.odd import ODD

CASES: Mapping[str, Case] = {**USUAL, **ODD}
