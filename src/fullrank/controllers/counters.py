"""What has become of jobs since the controller was started, under the names that v1's dashboards ask for."""

from collections import Counter
from collections.abc import Iterator

from fullrank.api.jobs import JobStatus
from fullrank.dialects.contract import Report

WORDS = {
    "created": "Counts number of jobs created",
    "deleted": "Counts number of jobs deleted",
    "successful": "Counts number of jobs successful",
    "failed": "Counts number of jobs failed",
    "restarted": "Counts number of jobs restarted",
}
ENDS = {"Succeeded": "successful", "Failed": "failed"}


class Counters:
    """By what happened, the namespace and the framework. Every happening counts once, whichever rule saw it."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def reported(self, before: JobStatus, report: Report, namespace: str, framework: str) -> None:
        """Takes in what a status says that the one before did not."""
        words = Counter({"created": int(not before.states), "restarted": report.restarts - before.restarts})
        if not before.finished:
            words.update(ENDS[mark.state] for mark in report.marks if mark.holds and mark.state in ENDS)
        for word, times in words.items():
            self._counts[word, namespace, framework] += times

    def deleted(self, namespace: str, framework: str) -> None:
        """A job whose time was over."""
        self._counts["deleted", namespace, framework] += 1

    def text(self) -> str:
        """In Prometheus' own format."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for word, about in WORDS.items():
            name = f"training_operator_jobs_{word}_total"
            yield f"# HELP {name} {about}"
            yield f"# TYPE {name} counter"
            for (happened, namespace, framework), times in sorted(self._counts.items()):
                if happened == word and times:
                    yield f'{name}{{framework="{framework}",job_namespace="{namespace}"}} {times}'
