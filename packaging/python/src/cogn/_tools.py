"""Tools: functions of the program that models may call. `tool` describes one; its schema is read from the signature."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

_TYPES: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    dict: {"type": "object"},
    list: {"type": "array"},
    Any: {},
}


class Tool:
    """A function with its declaration for models and for the policies of a module."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        needs: Sequence[str] = (),
        timeout: float | None = None,
    ) -> None:
        self.function = function
        self.name = name or getattr(function, "__name__", "tool")
        self.description = description or inspect.getdoc(function) or ""
        self.parameters = dict(parameters) if parameters is not None else _schema(function)
        self.needs = list(needs)
        self.timeout = timeout

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


@overload
def tool(
    function: Callable[..., Any],
    *,
    name: str | None = ...,
    description: str | None = ...,
    parameters: Mapping[str, Any] | None = ...,
    needs: Sequence[str] = ...,
    timeout: float | None = ...,
) -> Tool: ...
@overload
def tool(
    function: None = None,
    *,
    name: str | None = ...,
    description: str | None = ...,
    parameters: Mapping[str, Any] | None = ...,
    needs: Sequence[str] = ...,
    timeout: float | None = ...,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    needs: Sequence[str] = (),
    timeout: float | None = None,
) -> Any:
    """Creates a tool from a function; also a decorator. `needs` must list everything that it uses: `network`,
    `filesystem_write`, `side_effects`, `code_execution`. `timeout` is in seconds.
    """

    def make(each: Callable[..., Any]) -> Tool:
        return Tool(
            each, name=name, description=description, parameters=parameters, needs=needs, timeout=timeout
        )

    return make(function) if function is not None else make


def described(given: Tool | Callable[..., Any]) -> dict[str, Any]:
    """Returns the declaration of a tool for the runtime."""
    made = given if isinstance(given, Tool) else Tool(given)
    function = made.function

    async def acall(arguments: dict[str, Any]) -> Any:
        return await function(**arguments)

    def call(arguments: dict[str, Any]) -> Any:
        return function(**arguments)

    return {
        "function": acall if inspect.iscoroutinefunction(function) else call,
        "name": made.name,
        "description": made.description,
        "parameters": made.parameters,
        "needs": made.needs,
        "timeout": made.timeout,
    }


def _schema(function: Callable[..., Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ValueError(f"a tool needs named arguments: `{name}` of `{function.__name__}`")
        properties[name] = _type(hints.get(name, Any))
        if parameter.default is parameter.empty:
            required.append(name)
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return schema


def _type(hint: Any) -> dict[str, Any]:
    if hint in _TYPES:
        return dict(_TYPES[hint])
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is list and arguments:
        return {"type": "array", "items": _type(arguments[0])}
    if origin is dict:
        return {"type": "object"}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    plain = [each for each in arguments if each is not type(None)]
    if arguments and len(plain) == 1:
        return _type(plain[0])
    raise ValueError(f"unknown schema of `{hint}`: pass `parameters`")
