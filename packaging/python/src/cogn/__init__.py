"""`cogn`: run Cognitive Modules, AI tasks with a contract, from Python.

    import cogn

    envelope = cogn.run("text-classifier", {"text": "The delivery came two weeks late."})
    print(envelope.data if envelope.ok else envelope.error)

A run answers with an `Envelope`, whatever the model, the network or the caller does. Exceptions are for misuse in Python, for
`Envelope.unwrap` and for typed modules.
"""

from __future__ import annotations

import atexit as _atexit
import os as _os

from . import _native
from ._binary import binary
from ._envelope import Envelope, Failure
from ._reply import Reply
from ._runtime import AsyncChunks, Chunk, Chunks, Runtime, arun, astream, run, stream
from ._tools import Tool, tool

__version__: str = _native.VERSION

__all__ = [
    "AsyncChunks",
    "Chunk",
    "Chunks",
    "Envelope",
    "Failure",
    "Reply",
    "Runtime",
    "Tool",
    "arun",
    "astream",
    "binary",
    "run",
    "stream",
    "tool",
]

_atexit.register(_native.close)
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_native.after_fork)
