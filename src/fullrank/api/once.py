"""A property that is worked out once for each object.

What `functools.cached_property` does, without the lock that it takes before Python 3.12: a look at a job asks for a
dozen of them, and nothing below the client has threads.
"""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class once(Generic[T]):  # noqa: N801  # it stands where decorators stand
    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, obj: None, owner: type) -> Self: ...

    @overload
    def __get__(self, obj: object, owner: type) -> T: ...

    def __get__(self, obj: object | None, owner: type) -> T | Self:
        if obj is None:
            return self
        found = obj.__dict__[self._name] = self._compute(obj)
        return found
