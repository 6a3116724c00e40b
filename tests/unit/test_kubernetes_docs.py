"""What docs/kubernetes-api.md claims in numbers is what the lists say."""

from pathlib import Path

from tests.contract.scenes import DIFFERENCES, SCENES

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/kubernetes-api.md").read_text()


def test_the_count_of_conformance_tests_is_the_list_s() -> None:
    lines = (ROOT / "tests/conformance/api.txt").read_text().splitlines()
    passing = [line for line in lines if line.startswith("[")]
    unable = [line for line in lines if line.startswith("- ")]
    assert f"{len(passing)} of {len(passing) + len(unable)} pass" in TEXT


def test_the_count_of_differences_is_the_list_s() -> None:
    given = [line for text in SCENES.values() for line in text.splitlines() if line]
    assert len(given) > 250
    assert f"but for the {len(DIFFERENCES)} named" in TEXT
