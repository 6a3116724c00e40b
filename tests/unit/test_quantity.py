import pytest

from fullrank.api.quantity import Quantity, from_bytes, from_milli, milli, whole

AMOUNTS: dict[Quantity, tuple[int, int]] = {
    "500m": (1, 500),
    "2": (2, 2000),
    2: (2, 2000),
    0.5: (1, 500),
    "0.1": (1, 100),
    "100u": (1, 1),
    "1k": (1000, 10**6),
    "1Ki": (1024, 1024000),
    "16Gi": (16 * 2**30, 16 * 2**30 * 1000),
    "1.5Gi": (3 * 2**29, 3 * 2**29 * 1000),
    "1e3": (1000, 10**6),
    "1E3": (1000, 10**6),
    "-1": (-1, -1000),
    ".5": (1, 500),
    "5.": (5, 5000),
}


@pytest.mark.parametrize(("quantity", "expected"), AMOUNTS.items(), ids=map(str, AMOUNTS))
def test_an_amount_is_counted_whole_and_in_thousandths_rounded_up(
    quantity: Quantity, expected: tuple[int, int]
) -> None:
    assert (whole(quantity), milli(quantity)) == expected


def test_an_exa_is_not_an_exponent() -> None:
    assert whole("1E") == 10**18


@pytest.mark.parametrize("text", ["", "m", "Gi", "1 Gi", "1gi", "1/2", "1e1.5", "1e999999999", "abc", "٣"])
def test_what_is_not_an_amount_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity such as 500m, 2 or 16Gi"):
        whole(text)


def test_no_amount_is_larger_than_kubernetes_can_hold() -> None:
    assert whole("1e99") == milli("9E") == 2**63 - 1


def test_amounts_are_written_as_short_as_they_can_be() -> None:
    assert [from_milli(1500), from_milli(2000), from_milli(0)] == ["1500m", "2", "0"]
    assert [from_bytes(16 * 2**30), from_bytes(1536), from_bytes(1000), from_bytes(0)] == [
        "16Gi",
        "1536",
        "1000",
        "0",
    ]
