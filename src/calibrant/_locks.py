"""The lock between threads that stays usable after a fork, and properties that need none."""

from __future__ import annotations

import functools
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

__all__ = ["UPDATES", "cached_property"]

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


UPDATES = threading.RLock()
"""Lock of whatever grows in place; what it guards is replaced in one assignment."""

if hasattr(
    os, "register_at_fork"
):  # a child would wait for ever on a lock that another thread holds
    os.register_at_fork(
        before=UPDATES.acquire, after_in_parent=UPDATES.release, after_in_child=UPDATES.release
    )
