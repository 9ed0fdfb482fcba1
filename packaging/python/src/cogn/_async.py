"""The bridge from runs to the event loop of their caller: one per loop, for the lifetime of the loop."""

from __future__ import annotations

import asyncio
import os
import weakref

from . import _native

_bridges: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _native.Bridge]" = weakref.WeakKeyDictionary()


def bridge(loop: asyncio.AbstractEventLoop) -> "_native.Bridge":
    """The bridge of the loop that runs in this thread."""
    known = _bridges.get(loop)
    if known is None:
        known = _native.Bridge(weakref.proxy(loop))
        if known.watched is not None:
            try:
                loop.add_reader(known.watched, known.deliver)
            except NotImplementedError:
                known.watch_nothing()
        _bridges[loop] = known
    return known


# The child of a fork has separate loops.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_bridges.clear)
