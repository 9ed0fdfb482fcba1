"""`cogn`: run Cognitive Modules, AI tasks with a contract, from Python.

    import cogn

    envelope = cogn.run("text-classifier", {"text": "The delivery came two weeks late."})
    print(envelope.data if envelope.ok else envelope.error)

A run answers with an `Envelope`, whatever the model, the network or the caller does. Exceptions are for misuse in Python, for
`Envelope.unwrap`, for typed modules, and for modules that declare `failure.contract: throw`.
"""

from __future__ import annotations

import atexit as _atexit
import os as _os
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import _native
from ._binary import binary
from ._envelope import Envelope, Failure
from ._native import Call
from ._runtime import AsyncChunks, Chunk, Chunks, Runtime, arun, astream, run, stream

if _TYPE_CHECKING:
    from ._api import find_module, load_module, run_module, run_module_async
    from ._context import ContextBuilder
    from ._module import AsyncPartials, Module, module
    from ._replay import replay
    from ._reply import Reply
    from ._tools import Tool, tool
    from .columns import Udf, udf

__version__: str = _native.VERSION

__all__ = [
    "AsyncChunks",
    "AsyncPartials",
    "Call",
    "Chunk",
    "Chunks",
    "ContextBuilder",
    "Envelope",
    "Failure",
    "Module",
    "Reply",
    "Runtime",
    "Tool",
    "Udf",
    "arun",
    "astream",
    "binary",
    "find_module",
    "load_module",
    "module",
    "replay",
    "run",
    "run_module",
    "run_module_async",
    "stream",
    "tool",
    "udf",
]

# Optional parts are imported on first use, so that `import cogn` is fast.
_LATER = {
    "AsyncPartials": "_module",
    "ContextBuilder": "_context",
    "Module": "_module",
    "Reply": "_reply",
    "Tool": "_tools",
    "Udf": "columns",
    "find_module": "_api",
    "load_module": "_api",
    "module": "_module",
    "replay": "_replay",
    "run_module": "_api",
    "run_module_async": "_api",
    "tool": "_tools",
    "udf": "columns",
}


def __getattr__(name: str) -> _Any:
    home = _LATER.get(name)
    if home is None:
        raise AttributeError(f"module `cogn` has no attribute `{name}`")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


_atexit.register(_native.close)
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_native.after_fork)
