"""The four functions of the published guide: `run_module`, `run_module_async`, `load_module` and `find_module`. Results are
envelopes: `result["data"]["label"]`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Union

from ._envelope import Envelope, Failure
from ._module import Module
from ._runtime import Runtime, default

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import RunOptions

AnyModule = Union[str, "os.PathLike[str]", Module[Any, Any]]


def _key(module: AnyModule) -> str:
    return module._key if isinstance(module, Module) else os.fspath(module)


def run_module(
    module: AnyModule, input: Mapping[str, Any] | None = None, *, runtime: Runtime | None = None, **options: Unpack[RunOptions]
) -> Envelope:
    """Runs a module, by name, by path or loaded. The answer is always an envelope, even if the run fails."""
    return (runtime or default()).run(_key(module), input, **options)


async def run_module_async(
    module: AnyModule, input: Mapping[str, Any] | None = None, *, runtime: Runtime | None = None, **options: Unpack[RunOptions]
) -> Envelope:
    """The same for asyncio."""
    return await (runtime or default()).arun(_key(module), input, **options)


def load_module(name: Union[str, "os.PathLike[str]"], *, runtime: Runtime | None = None) -> Module[Any, dict[str, Any]]:
    """A module by name or path. Raises `Failure` if there is none, or if its folder is broken."""
    return Module(name, runtime=runtime)


def find_module(name: Union[str, "os.PathLike[str]"], *, runtime: Runtime | None = None) -> Module[Any, dict[str, Any]] | None:
    """Finds a module; returns `None` if there is none. `path` is its folder, or `None` for a bundled module."""
    try:
        return load_module(name, runtime=runtime)
    except Failure as failure:
        if failure.code == "E4006":
            return None
        raise
