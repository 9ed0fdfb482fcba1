"""Waits for work of the runtime in the background, on the event loop of the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from . import _async, _native


async def awaited(start: Callable[[_native.Bridge, asyncio.Future[Any]], _native.RunHandle]) -> Any:
    """What the future is resolved with. Cancelling the task cancels what was started."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    handle = start(_async.bridge(loop), future)
    try:
        return await future
    except BaseException:
        handle.cancel()
        raise
