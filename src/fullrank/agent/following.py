"""List, then watch, then list again when the watch is too old: every object of a selection is seen as it now is."""

from collections.abc import Callable

import anyio

from fullrank.api.meta import Json, uid_of
from fullrank.api.scheme import Kind
from fullrank.client.port import Reader
from fullrank.errors import Gone, Unavailable

RETRY = 1.0  # seconds


async def follow(
    reader: Reader,
    kind: Kind,
    *,
    see: Callable[[Json], None],
    lose: Callable[[Json], None],
    listed: Callable[[], None] = lambda: None,
    fields: str = "",
) -> None:
    """Calls `see` for what is there or has changed, `lose` for what is gone, `listed` when all there is was seen."""
    known: dict[str, Json] = {}
    while True:
        try:
            listing = await reader.select(kind, fields=fields)
            current = {uid_of(obj): obj for obj in listing.items}
            for uid in known.keys() - current.keys():
                lose(known[uid])
            for obj in current.values():
                see(obj)
            known = current
            listed()
            async with reader.watch(kind, since=listing.revision, fields=fields) as events:
                async for event in events:
                    if event.type == "DELETED":
                        known.pop(uid_of(event.obj), None)
                        lose(event.obj)
                    elif event.type != "BOOKMARK":
                        known[uid_of(event.obj)] = event.obj
                        see(event.obj)
        except Gone:
            continue
        except Unavailable:
            await anyio.sleep(RETRY)
