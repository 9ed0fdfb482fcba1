"""Recorded replies instead of a model, for tests: without key and network, through the whole pipeline.

`with cogn.replay("tests/"):` applies to all threads of this process until the block ends. A run without a recorded
input fails with `E4001` and never calls a model.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import os
import sys
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from . import _native, _runtime
from ._awaited import awaited

if TYPE_CHECKING:
    from ._envelope import Envelope
    from ._runtime import AsyncChunks, Chunks, Runtime

_F = TypeVar("_F", bound=Callable[..., Any])

_lock = threading.Lock()


def _after_fork() -> None:
    """The thread that held the lock exists only in the parent."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class replay:
    """Answers runs with the recorded replies of a folder. A context manager and a decorator, also of `async`
    functions.

    The folder is a module, the folder `tests` of one, or any folder with modules or recordings below it. Recordings
    outside of a module are in a folder with the module's name: `tests/text-classifier/CASE.input.json` and
    `CASE.reply.txt`, and, if the provider received a schema, its dialect in `CASE.reply.json`: `{"reply_dialect":
    "openai"}`. A relative path starts at the folder of the file
    that calls `cogn.replay`, so a test passes from every working directory.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = _beside(sys._getframe(1).f_code.co_filename, os.fspath(folder))
        self._recordings: _native.Recordings | None = None

    def _read(self) -> _native.Recordings:
        # A decorator is created when its file is imported; its test reports a missing folder.
        if self._recordings is None:
            self._recordings = _native.Recordings(os.fspath(self.folder))
        return self._recordings

    def __enter__(self) -> replay:
        self._read()
        with _lock:
            _runtime._replaying.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with _lock:
            # Other threads may have started blocks in between.
            active = _runtime._replaying
            del active[max(index for index, each in enumerate(active) if each is self)]

    def __len__(self) -> int:
        return len(self._read())

    def __bool__(self) -> bool:
        return True

    def __call__(self, function: _F) -> _F:
        if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
            raise TypeError("`cogn.replay` cannot decorate a generator: use it as a block inside")
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

            return awaited  # type: ignore[return-value]

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return called  # type: ignore[return-value]

    # The functions that `Runtime` calls instead of a run.

    def run(self, runtime: Runtime, module: str, input: Any, options: dict[str, Any]) -> Envelope:
        native, options = replayed(runtime, module, input, options)
        return native.run(module, input, options)

    async def arun(self, runtime: Runtime, module: str, input: Any, options: dict[str, Any]) -> Envelope:
        native, options = replayed(runtime, module, input, options, asyncio.get_running_loop())
        envelope: Envelope = await awaited(lambda bridge, future: native.start(bridge, future, module, input, options))
        return envelope

    def stream(self, runtime: Runtime, module: str, input: Any, options: dict[str, Any]) -> Chunks:
        native, options = replayed(runtime, module, input, options)
        return native.stream(module, input, options)

    def astream(self, runtime: Runtime, module: str, input: Any, options: dict[str, Any]) -> AsyncChunks:
        native, options = replayed(runtime, module, input, options, asyncio.get_running_loop())
        return _runtime.AsyncChunks(native.stream(module, input, options))


def _beside(file: str, folder: str) -> str:
    """The folder as seen from a file. Code without a file, as in a console, starts at the working directory."""
    return os.path.join(os.path.dirname(os.path.abspath(file)), folder) if os.path.isfile(file) else folder


def replayed(
    runtime: Runtime, module: str, input: Any, options: Mapping[str, Any], loop: asyncio.AbstractEventLoop | None = None
) -> tuple[_native.Runtime, dict[str, Any]]:
    """Returns the runtime with recorded replies as its only model, and the options of a run with the replies for its
    input. Modules, tools and limits do not change."""
    options = {**options, "replies": replies_for(module, input, options.get("text"))}
    if runtime._calls_program:
        options["caller"] = (loop, contextvars.copy_context())
    return recorded(runtime), options


def recorded(runtime: Runtime) -> _native.Runtime:
    """Returns the same runtime, which answers with the replies of each run. Needs no key and no weights."""
    twin: _native.Runtime | None = runtime.__dict__.get("_recorded")
    if twin is None:
        twin = runtime.__dict__["_recorded"] = _native.Runtime({**runtime._parts, "provider": "recorded", "model": None})
    return twin


def replies_for(module: str, input: Any, text: str | None = None) -> dict[str, tuple[str, str | None]]:
    """The replies for a run, by module: the text and the schema dialect of each, from the innermost block that has any for this
    input."""
    with _lock:
        active: list[replay] = _runtime._replaying[::-1]
    asked = text if text is not None else ({} if input is None else input)
    return next((found for each in active if (found := each._read().replies(module, asked))), {})
