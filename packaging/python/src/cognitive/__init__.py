"""The API of the specification (v2.5, section 10.2), as it is printed there. It is built on `cogn`, which offers more.

    from cognitive import CognitiveRuntime

    runtime = CognitiveRuntime(streaming=True, multimodal=True)
    result = runtime.execute("text-classifier", {"text": "…"})

Another distribution has a package of this name as well. Two cannot share it, so this one does not load beside it.
"""

from __future__ import annotations

import os as _os
from collections.abc import Mapping as _Mapping
from importlib import metadata as _metadata
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any
from typing import Union as _Union

_OWN_FILES = {"__init__.py", "py.typed", "__pycache__"}


def _refuse_company() -> None:
    """Files that are not ours lie here if the other distribution came first, its metadata if it came at all."""
    foreign = sorted(set(_os.listdir(_os.path.dirname(__file__))) - _OWN_FILES)
    try:
        owner = f"the distribution `cognitive-modules` {_metadata.version('cognitive-modules')}"
    except _metadata.PackageNotFoundError:
        if not foreign:
            return
        owner = f"another distribution, to which these files belong: {', '.join(foreign)}"
    raise ImportError(
        f"the package `cognitive` is claimed by {owner}, and by `cognitive-runtime`; they overwrite each other's files. "
        "Uninstall the other one and reinstall `cognitive-runtime`, or use `import cogn`, which is not affected",
        name="cognitive",
        path=__file__,
    )


_refuse_company()

from cogn import AsyncChunks, ContextBuilder, Envelope, Failure, Runtime  # noqa: E402
from cogn import find_module, load_module, run_module, run_module_async  # noqa: E402
from cogn._module import Module as _Module  # noqa: E402

if _TYPE_CHECKING:
    from typing_extensions import Unpack as _Unpack

    from cogn._options import RunOptions as _RunOptions

_AnyModule = _Union[str, "_os.PathLike[str]", "_Module[_Any, _Any]"]

__all__ = [
    "CognitiveRuntime",
    "ContextBuilder",
    "Envelope",
    "Failure",
    "find_module",
    "load_module",
    "run_module",
    "run_module_async",
]


class CognitiveRuntime:
    """Runs modules, by name, by path or loaded.

    Without `streaming` every answer comes whole; without `multimodal` an item in an input is `E4011`. Everything else is
    decided as by `cogn.Runtime`, which `options` are for.
    """

    def __init__(self, streaming: bool = True, multimodal: bool = True, **options: _Any) -> None:
        self.streaming = streaming
        self.multimodal = multimodal
        self._runtime = Runtime(streaming=streaming, multimodal=multimodal, **options)

    def execute(self, module: _AnyModule, input: _Mapping[str, _Any] | None = None, **options: _Unpack[_RunOptions]) -> Envelope:
        """Runs a module and returns its envelope. Raises `Failure` if the run fails and the module declares
        `failure.contract: throw`."""
        return self._runtime.run(_key(module), input, **options)

    async def execute_async(
        self, module: _AnyModule, input: _Mapping[str, _Any] | None = None, **options: _Unpack[_RunOptions]
    ) -> Envelope:
        """The same for asyncio."""
        return await self._runtime.arun(_key(module), input, **options)

    def execute_stream(
        self, module: _AnyModule, input: _Mapping[str, _Any] | None = None, **options: _Unpack[_RunOptions]
    ) -> AsyncChunks:
        """Runs a module and gives its answer in pieces: `async for chunk in runtime.execute_stream(module, input)`."""
        return self._runtime.astream(_key(module), input, **options)


    def capabilities(self) -> dict[str, _Any]:
        """The declaration of this runtime: specification versions, streaming, transports and media."""
        return self._runtime.capabilities()


def _key(module: _AnyModule) -> str:
    return module._key if isinstance(module, _Module) else _os.fspath(module)
