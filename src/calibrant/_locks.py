"""Locks between threads that stay usable after a fork."""

from __future__ import annotations

import functools
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

__all__ = ["ForkSafeLock", "cached_property"]

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """Property computed once, without the lock of 3.11, which children inherit when they are forked."""

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]


class ForkSafeLock:
    """Lock between threads; in a child that was forked while one of them held it, it is open.

    What it guards must be replaced in one assignment, so that a child never finds it half changed.

    Examples
    --------
    >>> with ForkSafeLock():
    ...     pass
    """

    __slots__ = ("_lock", "_process")

    def __init__(self) -> None:
        self._lock, self._process = threading.Lock(), os.getpid()

    def __enter__(self) -> None:
        if self._process != os.getpid():
            with _FIRST_IN_CHILD:
                if self._process != os.getpid():
                    self._lock, self._process = threading.Lock(), os.getpid()
        self._lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return ForkSafeLock, ()


_FIRST_IN_CHILD = threading.Lock()


def _renew() -> None:
    global _FIRST_IN_CHILD
    _FIRST_IN_CHILD = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
