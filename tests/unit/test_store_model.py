"""The store against a dict: whatever is done to both, they say the same, and history replays to the present."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fullrank.api.meta import Json
from fullrank.controlplane.store import Place, Store
from fullrank.errors import Conflict, NotFound

PLACES = st.builds(
    Place, st.sampled_from(("pods", "jobs")), st.sampled_from(("", "a", "b")), st.sampled_from("xyz")
)
EXPECTED = st.one_of(st.none(), st.integers(0, 12))
KEEP = 8


class StoreAndDict(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = self.opened()
        self.model: dict[Place, tuple[int, Json]] = {}
        self.states: dict[int, dict[Place, tuple[int, Json]]] = {0: {}}

    def opened(self) -> Store:
        return Store(Path(self.folder.name, "state.db"), keep=KEEP, inline=True)

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def remember(self) -> None:
        self.states[self.store.revision] = dict(self.model)

    @rule(place=PLACES, size=st.integers(), expected=EXPECTED)
    def put(self, place: Place, size: int, expected: int | None) -> None:
        current = self.model[place][0] if place in self.model else 0
        obj = {"metadata": {"name": place.name}, "size": size}
        try:
            record = self.store.put(place, obj, expected=expected).change.record
        except Conflict:
            assert expected not in (None, current)
            return
        assert expected in (None, current)
        self.model[place] = (record.revision, record.copy())
        self.remember()

    @rule(place=PLACES)
    def remove(self, place: Place) -> None:
        try:
            self.store.remove(place, {"metadata": {"name": place.name}})
        except NotFound:
            assert place not in self.model
            return
        del self.model[place]
        self.remember()

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = self.opened()

    @invariant()
    def it_holds_what_the_dict_holds(self) -> None:
        assert self.held() == self.model

    @invariant()
    def history_replays_to_the_present(self) -> None:
        state = dict(self.states[self.store.compacted])
        for kind in ("pods", "jobs"):
            for change in self.store.changes(Place(kind, "", ""), self.store.compacted):
                before = state.get(change.place)
                assert (change.previous and change.previous.obj) == (before and before[1])
                assert (change.type == "ADDED") == (before is None)
                if change.type == "DELETED":
                    del state[change.place]
                else:
                    state[change.place] = (change.revision, change.record.obj)
        assert state == self.model

    @invariant()
    def every_moment_it_remembers_can_be_listed(self) -> None:
        for revision in range(self.store.compacted, self.store.revision + 1):
            assert self.held(at=revision) == self.states[revision]

    def held(self, at: int | None = None) -> dict[Place, tuple[int, Json]]:
        return {
            place: (record.revision, record.obj)
            for kind in ("pods", "jobs")
            for place, record in self.store.select(kind, at=at)
        }


StoreAndDict.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestStoreAndDict = StoreAndDict.TestCase
