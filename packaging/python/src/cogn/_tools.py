"""Tools: functions of the program that models may call. `tool` describes one; its schema is read from the signature."""

from __future__ import annotations

import inspect
import typing
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

_TYPES: Dict[Any, Dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    dict: {"type": "object"},
    list: {"type": "array"},
    Any: {},
}


class Tool:
    """A function with what a model and the policies of a module are told of it."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: Optional[str] = None,
        description: Optional[str] = None,
        parameters: Optional[Mapping[str, Any]] = None,
        needs: Sequence[str] = (),
        timeout: Optional[float] = None,
    ) -> None:
        self.function = function
        self.name = name or getattr(function, "__name__", "tool")
        self.description = description or inspect.getdoc(function) or ""
        self.parameters = dict(parameters) if parameters is not None else _schema(function)
        self.needs = list(needs)
        self.timeout = timeout

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def tool(
    function: Optional[Callable[..., Any]] = None,
    *,
    name: Optional[str] = None,
    description: Optional[str] = None,
    parameters: Optional[Mapping[str, Any]] = None,
    needs: Sequence[str] = (),
    timeout: Optional[float] = None,
) -> Any:
    """Makes a tool of a function; also as a decorator.

    `needs` says truly what it touches: `network`, `filesystem_write`, `side_effects`, `code_execution`. `timeout` is in seconds.
    """

    def make(each: Callable[..., Any]) -> Tool:
        return Tool(
            each, name=name, description=description, parameters=parameters, needs=needs, timeout=timeout
        )

    return make(function) if function is not None else make


def described(given: Union[Tool, Callable[..., Any]]) -> Dict[str, Any]:
    """What the runtime is told of a tool."""
    made = given if isinstance(given, Tool) else Tool(given)
    function = made.function

    if inspect.iscoroutinefunction(function):

        async def call(arguments: Dict[str, Any]) -> Any:
            return _boxed(await function(**arguments))

    else:

        def call(arguments: Dict[str, Any]) -> Any:  # type: ignore[misc]
            return _boxed(function(**arguments))

    return {
        "function": call,
        "name": made.name,
        "description": made.description,
        "parameters": made.parameters,
        "needs": made.needs,
        "timeout": made.timeout,
    }


class _Result(Dict[str, Any]):
    """A result that is handed over as it is, also where it could be taken for pieces."""


def _boxed(result: Any) -> Any:
    return list(result) if isinstance(result, (tuple, set)) else result


def _schema(function: Callable[..., Any]) -> Dict[str, Any]:
    hints = typing.get_type_hints(function)
    properties: Dict[str, Any] = {}
    required: List[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ValueError(f"a tool takes its arguments by name: `{name}` of `{function.__name__}`")
        properties[name] = _type(hints.get(name, Any))
        if parameter.default is parameter.empty:
            required.append(name)
    schema: Dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return schema


def _type(hint: Any) -> Dict[str, Any]:
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
    raise ValueError(f"the schema of `{hint}` is not known: give `parameters`")
