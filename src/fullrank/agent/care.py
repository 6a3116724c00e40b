"""What is done about a container while it runs: its hooks and its probes, and what follows from their answers."""

from collections.abc import Callable
from typing import Protocol

import anyio

from fullrank.agent.handlers import Patient, perform
from fullrank.agent.probes import Health, probe, probe_of
from fullrank.api.meta import Json

LONGEST_HOOK = 3600.0  # seconds; the container counts as not started meanwhile


class Tell(Protocol):
    def __call__(self, kind: str, reason: str, message: str) -> None: ...


class Caretaker:
    """Of one attempt; `note` changes what is known of the container, `tell` writes an event about it."""

    def __init__(self, patient: Patient, grace: float, *, note: Callable[..., None], tell: Tell) -> None:
        self._patient = patient
        self._grace = grace
        self._note = note
        self._tell = tell

    async def run(self, has_started: bool) -> None:
        """The postStart hook, then the startup probe, then the two others side by side."""
        if not has_started:
            await self._see_it_start()
            self._note(has_started=True)
        async with anyio.create_task_group() as tasks:
            if asked := probe_of(self._patient.spec, "readiness"):
                tasks.start_soon(self._probe, "readiness", asked, lambda well: self._note(is_well=well))
            if asked := probe_of(self._patient.spec, "liveness"):
                failed = anyio.Event()
                tasks.start_soon(self._probe, "liveness", asked, lambda fine: None if fine else failed.set())
                await failed.wait()
                await self._give_up("failed liveness probe, will be restarted")

    async def say_goodbye(self, grace: float) -> None:
        """The preStop hook, within the grace that there is."""
        hook = _hooks(self._patient.spec).get("preStop")
        if hook and grace > 0 and (why := await perform(hook, self._patient, grace)):
            self._tell("Warning", "FailedPreStopHook", f"PreStopHook failed: {why}")

    async def _see_it_start(self) -> None:
        hook = _hooks(self._patient.spec).get("postStart")
        if hook and (why := await perform(hook, self._patient, LONGEST_HOOK)):
            self._tell("Warning", "FailedPostStartHook", f"PostStartHook failed: {why}")
            await self._give_up("failed its postStart hook")
        if asked := probe_of(self._patient.spec, "startup"):
            settled, verdicts = anyio.Event(), list[bool]()

            def settle(fine: bool) -> None:
                verdicts.append(fine)
                settled.set()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._probe, "startup", asked, settle)
                await settled.wait()
                tasks.cancel_scope.cancel()
            if not verdicts[0]:
                await self._give_up("failed startup probe, will be restarted")

    async def _probe(self, health: Health, asked: Json, settle: Callable[[bool], None]) -> None:
        def complain(why: str) -> None:
            self._tell("Warning", "Unhealthy", f"{health.capitalize()} probe failed: {why}")

        await probe(asked, self._patient, settle=settle, complain=complain)

    async def _give_up(self, why: str) -> None:
        """Ends a container that does not do as it should; whether it is started again is the pod's policy."""
        attempt = self._patient.attempt
        self._tell("Normal", "Killing", f"Container {attempt.container} {why}")
        await self._patient.runtime.stop(attempt, self._grace)
        await anyio.sleep_forever()  # until its end is seen


def starts_at_once(spec: Json) -> bool:
    return "postStart" not in _hooks(spec) and probe_of(spec, "startup") is None


def is_well_at_once(spec: Json) -> bool:
    return probe_of(spec, "readiness") is None


def _hooks(spec: Json) -> Json:
    return spec.get("lifecycle") or {}
