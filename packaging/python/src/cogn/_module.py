"""`module`: a module as a function. With pydantic classes it takes and returns objects. The classes are checked
against the module's `schema.json` when it is loaded. Without classes it takes and returns dictionaries."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Generic, NoReturn, TypeVar, Union, cast, overload

from . import _native
from ._envelope import Envelope, Failure
from ._fit import mismatches
from ._runtime import Runtime, default

In = TypeVar("In")
Out = TypeVar("Out")

Name = Union[str, "os.PathLike[str]"]


class Module(Generic[In, Out]):
    """A loaded module. A call returns its data, or raises `Failure`."""

    def __init__(self, name: Name, *, input: Any = None, output: Any = None, runtime: Runtime | None = None) -> None:
        self.runtime = runtime if runtime is not None else default()
        self._key = os.fspath(name)
        described = self.runtime._native.module(self._key)
        self.manifest: dict[str, Any] = described["manifest"]
        self.name: str = self.manifest["name"]
        self.version: str = self.manifest["version"]
        self.path: str | None = described["folder"]
        self.prompt: str = described["prompt"]
        self.input_schema: dict[str, Any] = described["input"]
        self.data_schema: dict[str, Any] = described["data"]
        self._input, self._output = _checked(self, described["$defs"], input, output)
        self._partial: Any = None

    def __call__(self, input: In | Mapping[str, Any] | None = None, /, **fields: Any) -> Out:
        """Runs the module and returns its data, as an object of the given class. Raises `Failure` if the run
        fails."""
        return self._read(self.run(input, **fields))

    async def acall(self, input: In | Mapping[str, Any] | None = None, /, **fields: Any) -> Out:
        """The same for asyncio."""
        return self._read(await self.arun(input, **fields))

    def run(self, input: In | Mapping[str, Any] | None = None, /, **fields: Any) -> Envelope:
        """Runs the module and returns its envelope. Raises `Failure` if the run fails and the module declares
        `failure.contract: throw`."""
        return self.runtime.run(self._key, self._written(input, fields))

    async def arun(self, input: In | Mapping[str, Any] | None = None, /, **fields: Any) -> Envelope:
        """The same for asyncio. Cancelling the task cancels the run."""
        return await self.runtime.arun(self._key, self._written(input, fields))

    def stream(self, input: In | Mapping[str, Any] | None = None, /, **fields: Any) -> AsyncPartials[Out]:
        """Iterates over the growing data: `async for partial in module.stream(…)`. Missing members are `None`. The
        last item is the complete, validated answer. A failed run raises `Failure`."""
        return AsyncPartials(self, self.runtime.astream(self._key, self._written(input, fields)))

    def partials(self, input: In | Mapping[str, Any] | None = None, /, **fields: Any) -> Iterator[Out]:
        """The same without asyncio."""
        growing = _Growing(self)
        with self.runtime.stream(self._key, self._written(input, fields)) as chunks:
            for chunk in chunks:
                if growing.take(chunk):
                    yield growing.read()

    def __repr__(self) -> str:
        return f"<module {self.name} {self.version}>"

    def _written(self, input: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Converts the input to JSON. A class that rejects it raises its own exception."""
        if input is not None and fields:
            raise TypeError("an input is given either whole or field by field, not both")
        if self._input is None:
            if input is None:
                return dict(fields)
            if not isinstance(input, Mapping):
                return _dumped(input)
            return dict(input)
        if input is None:
            input = self._input(**fields)
        elif not isinstance(input, self._input):
            input = self._input.model_validate(input)
        return _dumped(input)

    def _read(self, envelope: Envelope) -> Out:
        data = envelope.unwrap()
        if self._output is None:
            return cast(Out, data)
        from pydantic import ValidationError

        try:
            return cast(Out, self._output.model_validate(data))
        except ValidationError as error:
            raise Failure(_native.unfit(data, str(error))) from error

    def _read_partial(self, data: dict[str, Any]) -> Out:
        """Builds an object with every attribute of the class; missing ones are `None`."""
        if self._output is None:
            return cast(Out, data)
        if self._partial is None:
            from pydantic import create_model

            names: dict[str, Any] = {name: (Any, None) for name in self._output.model_fields}
            self._partial = create_model(f"Partial{self._output.__name__}", **names)
        return cast(Out, self._partial.model_construct(**_by_field(self._output, data)))


class _Growing:
    """The growing data of a stream."""

    def __init__(self, module: Module[Any, Any]) -> None:
        self._module = module
        self._so_far = _native.DataSoFar()
        self._last: dict[str, Any] | None = None

    def take(self, chunk: dict[str, Any]) -> bool:
        """Adds a chunk; returns whether there is new data."""
        if "chunk" in chunk:
            return self._so_far.take(chunk["chunk"])
        if "final" in chunk or "error" in chunk:
            self._last = chunk
            return True
        return False

    def read(self) -> Any:
        if self._last is not None:
            return self._module._read(_native.assembled([self._last]))
        return self._module._read_partial(self._so_far.data())


class AsyncPartials(AsyncIterator[Out]):
    """An iterator over growing data. Dropping it, or `aclose`, cancels the run."""

    def __init__(self, module: Module[Any, Out], chunks: Any) -> None:
        self._growing = _Growing(module)
        self._chunks = chunks

    def __aiter__(self) -> AsyncPartials[Out]:
        return self

    async def __anext__(self) -> Out:
        while True:
            if self._growing.take(await self._chunks.__anext__()):
                return cast(Out, self._growing.read())

    async def aclose(self) -> None:
        """Cancels the run, unless it is over."""
        await self._chunks.aclose()


@overload
def module(name: Name, *, runtime: Runtime | None = ...) -> Module[Mapping[str, Any], dict[str, Any]]: ...
@overload
def module(
    name: Name, *, input: type[In], runtime: Runtime | None = ...
) -> Module[In, dict[str, Any]]: ...
@overload
def module(
    name: Name, *, output: type[Out], runtime: Runtime | None = ...
) -> Module[Mapping[str, Any], Out]: ...
@overload
def module(name: Name, *, input: type[In], output: type[Out], runtime: Runtime | None = ...) -> Module[In, Out]: ...
def module(name: Name, *, input: Any = None, output: Any = None, runtime: Runtime | None = None) -> Module[Any, Any]:
    """Returns a module by name or path, as a function. Raises `Failure` if there is none, and `TypeError` if a class
    does not match its schema."""
    return Module(name, input=input, output=output, runtime=runtime)


def _checked(module: Module[Any, Any], defs: dict[str, Any], input: Any, output: Any) -> tuple[Any, Any]:
    wrong: list[str] = []
    for side, model, contract in (("input", input, module.input_schema), ("output", output, module.data_schema)):
        if model is None:
            continue
        if not hasattr(model, "model_json_schema"):
            raise TypeError(f"`{side}` must be a class of pydantic 2, found: {model!r}")
        is_input = side == "input"
        mode = "serialization" if is_input else "validation"
        found = mismatches(model.model_json_schema(mode=mode), contract, defs, is_input=is_input)
        wrong.extend(f"{side} class `{model.__name__}`, {each}" for each in found)
    if wrong:
        _refuse(module.name, wrong)
    return input, output


def _refuse(name: str, wrong: list[str]) -> NoReturn:
    lines = "".join(f"\n  {each}" for each in wrong)
    raise TypeError(f"the classes do not match `schema.json` of the module `{name}`:{lines}")


def _dumped(input: Any) -> dict[str, Any]:
    """Converts a pydantic object to JSON; `None` means that a member is absent."""
    dump = getattr(input, "model_dump", None)
    if dump is None:
        raise TypeError(f"an input must be a dictionary or an object of pydantic, found: {type(input).__qualname__}")
    return cast("dict[str, Any]", dump(mode="json", by_alias=True, exclude_none=True))


def _by_field(model: Any, data: Mapping[str, Any]) -> dict[str, Any]:
    """Renames members to the names of the fields, if a field has another name in JSON."""
    found: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        alias = field.validation_alias if isinstance(field.validation_alias, str) else field.alias
        for key in (alias, name):
            if key in data:
                found[name] = data[key]
                break
    return found
