"""Runs functions of the program that a run calls: providers and tools. Sync functions run on daemon threads of this
module. Async functions run on the event loop of the caller, or on a loop of this module. Their exceptions never leave
this module."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any

from . import _native
from ._reply import Reply

_MOST_THREADS = 256
_IDLE_SECONDS = 10.0

_Job = Callable[[], None]


class _Threads:
    """Daemon threads, created on demand. The interpreter does not wait for them at exit."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._count = 0

    def submit(self, job: _Job) -> None:
        with self._lock:
            self._jobs.put(job)
            if self._idle > 0:
                self._idle -= 1
                return
            if self._count >= _MOST_THREADS:
                return
            self._count += 1
        threading.Thread(target=self._work, name="cogn-callback", daemon=True).start()

    def _work(self) -> None:
        job = self._next()
        while job is not None:
            job()
            # A job refers to its event loop, which must not be kept alive while this thread waits.
            job = None
            job = self._waiting() or self._next()

    def _waiting(self) -> _Job | None:
        """A waiting job; `None` if this thread is idle."""
        with self._lock:
            try:
                return self._jobs.get_nowait()
            except queue.Empty:
                self._idle += 1
                return None

    def _next(self) -> _Job | None:
        while True:
            try:
                return self._jobs.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    # A caller may have counted on this thread just before.
                    if self._jobs.empty():
                        self._idle = max(0, self._idle - 1)
                        self._count -= 1
                        return None


class _Loop:
    """An event loop on a daemon thread, for async functions in runs without an event loop."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self._work, name="cogn-loop", daemon=True).start()

    def _work(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()


_threads = _Threads()
_loop: _Loop | None = None
_lock = threading.Lock()


def _own_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = _Loop()
        return _loop.loop


def _after_fork() -> None:
    """The threads exist only in the parent."""
    global _threads, _loop, _lock
    _threads, _loop, _lock = _Threads(), None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def start(
    function: Callable[[Any], Any],
    argument: Any,
    reply: "_native.Reply",
    loop: asyncio.AbstractEventLoop | None,
    context: contextvars.Context | None,
) -> Callable[[], None]:
    """Starts a function and returns a handle that cancels it. Called on a thread of the runtime, so it never
    blocks."""
    call = _FunctionCall(function, argument, reply, loop, context or contextvars.copy_context())
    if _is_async(function):
        call.go_async(function)
    else:
        _threads.submit(call.run)
    return call.cancel


def _is_async(function: Callable[..., Any]) -> bool:
    def either(each: Any) -> bool:
        return inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each)

    return either(function) or either(getattr(function, "__call__", None))


class _FunctionCall:
    """One call of a function."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        argument: Any,
        reply: "_native.Reply",
        loop: asyncio.AbstractEventLoop | None,
        context: contextvars.Context,
    ) -> None:
        self._function = function
        self._argument = argument
        self._reply = reply
        self._loop = loop
        # A context can be entered once at a time, and a run may call several functions.
        self._context = context.copy()
        self._task: asyncio.Task[None] | None = None
        self._cancelled = False

    def run(self) -> None:
        """Runs a sync function to its end, on this thread."""
        try:
            if not self._reply.wanted():
                return
            result = self._context.run(self._function, self._argument)
            if isinstance(result, (Awaitable, AsyncIterator)):
                self.go_async(lambda _: result)
            elif _is_whole(result):
                self._whole(result)
            else:
                self._context.run(self._pieces, result)
        except BaseException as error:  # noqa: BLE001 - the program's own, of whatever kind
            _raised(self._reply, error)

    def _pieces(self, result: Any) -> None:
        try:
            for piece in result:
                if not self._reply.piece(_text(piece)):
                    return
        finally:
            close = getattr(result, "close", None)
            if close is not None:
                close()
        self._reply.done()

    def _whole(self, result: Any) -> None:
        if isinstance(result, Reply):
            self._reply.done(result.text, result.model, result.usage, result.finish)
        else:
            self._reply.done(dict(result) if isinstance(result, Mapping) else result)

    def go_async(self, function: Callable[[Any], Any]) -> None:
        """Continues on an event loop."""
        loop = self._loop if self._loop is not None and not self._loop.is_closed() else _own_loop()

        def begin() -> None:
            if not self._cancelled:
                self._task = loop.create_task(self._answer(function))

        try:
            loop.call_soon_threadsafe(begin, context=self._context)
            self._loop = loop
        except RuntimeError as error:
            _raised(self._reply, error)

    async def _answer(self, function: Callable[[Any], Any]) -> None:
        try:
            result = function(self._argument)
            if isinstance(result, Awaitable):
                result = await result
            if isinstance(result, AsyncIterator):
                await self._pieces_async(result)
            elif _is_whole(result):
                self._whole(result)
            else:
                self._pieces(result)
        except asyncio.CancelledError:
            _raised(self._reply, RuntimeError("the function was cancelled"))
            raise
        except BaseException as error:  # noqa: BLE001 - the program's own, of whatever kind
            _raised(self._reply, error)

    async def _pieces_async(self, result: "AsyncIterator[Any]") -> None:
        try:
            async for piece in result:
                if not self._reply.piece(_text(piece)):
                    return
        finally:
            close = getattr(result, "aclose", None)
            if close is not None:
                await close()
        self._reply.done()

    def cancel(self) -> None:
        """Cancels an async function. A sync one ends before its next piece, because a thread cannot be stopped."""
        self._cancelled = True
        loop = self._loop
        if loop is not None and not loop.is_closed():
            try:
                loop.call_soon_threadsafe(self._cancel_task)
            except RuntimeError:
                pass

    def _cancel_task(self) -> None:
        if self._task is not None:
            self._task.cancel()


def _is_whole(result: Any) -> bool:
    if result is None or isinstance(result, (str, bytes, Mapping, Reply, list, tuple)):
        return True
    return not isinstance(result, Iterable)


def _text(piece: Any) -> str:
    if not isinstance(piece, str):
        raise TypeError(f"a piece of an answer is of the type {type(piece).__qualname__}, not str")
    return piece


def _raised(reply: "_native.Reply", error: BaseException) -> None:
    kind = "error"
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        kind = "timeout"
    elif getattr(error, "status_code", None) == 429:
        kind = "rate_limit"
    name = type(error).__qualname__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - even its text may fail
        text = ""
    reply.raised(kind, f"{name}: {text}" if text else name)
