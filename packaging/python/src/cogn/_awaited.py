"""Awaits work of the runtime on the event loop of the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from . import _async, _native


async def awaited(start: Callable[[_native.Bridge, asyncio.Future[Any]], _native.RunHandle]) -> Any:
    """Returns the result of the future. Cancelling the task cancels the work."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    handle = start(_async.bridge(loop), future)
    try:
        return await future
    except BaseException:
        handle.cancel()
        raise
