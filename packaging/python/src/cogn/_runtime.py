"""`Runtime`: runs modules, in one call or as a stream, also with asyncio."""

from __future__ import annotations

import contextvars
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from . import _native
from ._binary import binary
from ._envelope import Envelope

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import RunOptions

Chunk = dict[str, Any]
Provider = Callable[[_native.Call], Any]
Folder = Union[str, "os.PathLike[str]"]

# Filled by `cogn.replay`: the last entry replaces every runtime while it exists.
_replaying: list[Any] = []


# A streamed run. It is the native class itself: with a Python function in between, Ctrl-C could arrive before the
# code that closes it.
Chunks = _native.Chunks


class AsyncChunks(AsyncIterator[Chunk]):
    """A streamed run, for asyncio. `aclose`, or dropping it, cancels the run."""

    def __init__(self, native: "_native.Chunks") -> None:
        self._native = native

    def __aiter__(self) -> "AsyncChunks":
        return self

    async def __anext__(self) -> Chunk:
        import asyncio

        from . import _async

        loop = asyncio.get_running_loop()
        future = loop.create_future()
        handle = self._native.pull(_async.bridge(loop), future)
        try:
            chunk: Chunk | None = await future
        except BaseException:
            handle.cancel()
            self._native.close()
            raise
        if chunk is None:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        """Cancels the run, unless it is over."""
        self._native.close()

    async def __aenter__(self) -> "AsyncChunks":
        return self

    async def __aexit__(self, *_: object) -> None:
        self._native.close()


class Runtime:
    """Runs modules. Safe to share between threads and tasks.

    Missing settings come from the environment and the configuration files, as on the command line; with `env=False`
    neither is read. `streaming=False` disables streams, and `multimodal=False` refuses media.
    """

    def __init__(
        self,
        *,
        provider: str | Provider | None = None,
        model: str | None = None,
        modules: Folder | Sequence[Folder] | Callable[[str], Folder | None] | None = None,
        config: Folder | Mapping[str, Any] | None = None,
        env: bool = True,
        tools: Sequence[Any] | None = None,
        streaming: bool = True,
        multimodal: bool = True,
    ) -> None:
        described = [_described(tool) for tool in tools or ()]
        self._calls_program = callable(provider) or bool(described)
        self._parts: dict[str, Any] = {
            "provider": provider,
            "model": model,
            "modules": _folders(modules),
            "config": _configuration(config),
            "config_folder": None if config is None or isinstance(config, Mapping) else os.path.dirname(os.path.abspath(config)),
            "env": env,
            "tools": described,
            "document_reader": _program(),
            "streaming": streaming,
            "multimodal": multimodal,
        }
        self._native = _native.Runtime(self._parts)

    def run(self, module: str, input: Mapping[str, Any] | None = None, **options: Unpack[RunOptions]) -> Envelope:
        """Runs a module and waits for its envelope. Ctrl-C cancels the run. Raises `Failure` if the run fails and the module
        declares `failure.contract: throw`."""
        if _replaying:
            envelope: Envelope = _replaying[-1].run(self, module, input, options)
            return envelope
        return self._native.run(module, input, self._called(options, None))

    async def arun(self, module: str, input: Mapping[str, Any] | None = None, **options: Unpack[RunOptions]) -> Envelope:
        """The same for asyncio. Cancelling the task cancels the run."""
        if _replaying:
            envelope: Envelope = await _replaying[-1].arun(self, module, input, options)
            return envelope
        import asyncio

        from . import _async

        loop = asyncio.get_running_loop()
        future = loop.create_future()
        handle = self._native.start(_async.bridge(loop), future, module, input, self._called(options, loop))
        try:
            answer: Envelope = await future
            return answer
        except BaseException:
            handle.cancel()
            raise

    def stream(self, module: str, input: Mapping[str, Any] | None = None, **options: Unpack[RunOptions]) -> Chunks:
        """Runs a module and yields its answer in chunks. The run only progresses while chunks are requested."""
        if _replaying:
            chunks: Chunks = _replaying[-1].stream(self, module, input, options)
            return chunks
        return self._native.stream(module, input, self._called(options, None))

    def astream(self, module: str, input: Mapping[str, Any] | None = None, **options: Unpack[RunOptions]) -> AsyncChunks:
        """The same for asyncio: `async for chunk in runtime.astream(…)`."""
        if _replaying:
            chunks: AsyncChunks = _replaying[-1].astream(self, module, input, options)
            return chunks
        loop = _running_loop() if self._calls_program else None
        return AsyncChunks(self._native.stream(module, input, self._called(options, loop)))

    def _called(self, options: RunOptions, loop: Any) -> dict[str, Any]:
        """Returns the options, with the event loop for functions of this program if the runtime has any."""
        given: dict[str, Any] = options  # type: ignore[assignment]
        if self._calls_program:
            given["caller"] = (loop, contextvars.copy_context())
        return given

    def capabilities(self) -> dict[str, Any]:
        """The declaration of this runtime: specification versions, streaming, transports and media, as far as its models
        support them."""
        return self._native.capabilities()

    def names(self) -> list[str]:
        """The names of all modules that can be found."""
        return self._native.names()

    @property
    def notices(self) -> list[str]:
        """Notices about the configuration, such as files that are not trusted."""
        return self._native.notices


def _running_loop() -> Any:
    """Returns the event loop of this thread, if one is running. A stream may be created before its loop."""
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _folders(modules: Any) -> Any:
    """Returns folders as a list. The native half refuses every other value and names it."""
    if isinstance(modules, (list, tuple)):
        return [os.fspath(folder) for folder in modules]
    return modules


def _configuration(config: Any) -> str | None:
    """The text of a configuration. JSON is YAML as well."""
    if config is None:
        return None
    if isinstance(config, Mapping):
        import json

        return json.dumps(dict(config))
    with open(config, encoding="utf-8") as file:
        return file.read()


def _program() -> str | None:
    """Returns the path of the program, which reads documents in a separate process. Without it, documents are
    refused."""
    try:
        return binary()
    except FileNotFoundError:
        return None


def _described(tool: Any) -> Any:
    from ._tools import described

    return described(tool)


_default: Runtime | None = None


def default() -> Runtime:
    """Returns the default runtime, created at first use."""
    global _default
    if _default is None:
        _default = Runtime()
    return _default


def run(module: str, input: Mapping[str, Any] | None = None, **options: Unpack[RunOptions]) -> Envelope:
    """`Runtime.run` of the default runtime."""
    return default().run(module, input, **options)


async def arun(module: str, input: Mapping[str, Any] | None = None, **options: Unpack[RunOptions]) -> Envelope:
    """`Runtime.arun` of the default runtime."""
    return await default().arun(module, input, **options)


def stream(module: str, input: Mapping[str, Any] | None = None, **options: Unpack[RunOptions]) -> Chunks:
    """`Runtime.stream` of the default runtime."""
    return default().stream(module, input, **options)


def astream(module: str, input: Mapping[str, Any] | None = None, **options: Unpack[RunOptions]) -> AsyncChunks:
    """`Runtime.astream` of the default runtime."""
    return default().astream(module, input, **options)
