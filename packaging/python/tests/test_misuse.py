"""Mistakes of a program: wrong types, values that are not JSON, callbacks that die. A clear exception or an envelope, never a
crash."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import enum
import json
import math
from typing import Any

import pytest

import cogn
from answers import ANSWER, DATA, INPUT, TEXT, runtime


class Colour(str, enum.Enum):
    RED = "red"


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


_CIRCLE: dict[str, Any] = {}
_CIRCLE["again"] = _CIRCLE

NOT_JSON: list[tuple[Any, str]] = [
    ({"when": datetime.date(2026, 1, 1)}, '`input["when"]` is not JSON: unsupported type: `date`'),
    ({"items": [1, {"price": decimal.Decimal("1.5")}]}, '`input["items"][1]["price"]` is not JSON: unsupported type: `Decimal`'),
    ({"a": {1, 2}}, '`input["a"]` is not JSON: unsupported type: `set`'),
    ({"a": b"x"}, '`input["a"]` is not JSON: unsupported type: `bytes`'),
    ({"a": math.nan}, '`input["a"]` is not JSON: the number is not finite'),
    ({"a": [math.inf]}, '`input["a"][0]` is not JSON: the number is not finite'),
    ({"a": 10**400}, '`input["a"]` is not JSON: the number is too large'),
    ({"a": {1: 2}}, '`input["a"]` is not JSON: unsupported type of a key: `int`'),
    ({"a": "\ud800"}, '`input["a"]` is not JSON: a text with an unpaired surrogate'),
    ({"\ud800": 1}, "`input` is not JSON: a key with an unpaired surrogate"),
    ({"a": object()}, '`input["a"]` is not JSON: unsupported type: `object`'),
    ({"a": _deep(200)}, "nested more than 127 levels deep"),
    ({"a": _CIRCLE}, "nested more than 127 levels deep"),
    (iter([]), "`input` is not JSON: unsupported type"),
]


@pytest.mark.parametrize(("value", "message"), NOT_JSON, ids=range(len(NOT_JSON)))
def test_a_value_that_is_not_json_is_named_with_its_place(value: Any, message: str) -> None:
    ours = runtime()
    for start in (ours.run, ours.stream, ours.astream):
        with pytest.raises(TypeError) as caught:
            start("text-classifier", value)
        assert message in str(caught.value)
    with pytest.raises(TypeError):
        asyncio.run(ours.arun("text-classifier", value))


def test_what_is_json_arrives_as_it_is() -> None:
    seen: list[str] = []

    def provider(call: Any) -> str:
        seen.append(call.input)
        return TEXT

    value = {
        "text": "Zürich 🚆",
        "more": [None, True, False, 0, -1, 2**63 - 1, 2**64 - 1, 1.5, -0.0, 1e300, (1, 2), Colour.RED, {"": ""}],
    }
    assert runtime(provider).run("text-classifier", value).ok
    sent = json.JSONDecoder().raw_decode(seen[0][seen[0].index("{") :])[0]
    assert sent == json.loads(json.dumps(value))


@pytest.mark.parametrize("value", [[], "text", 5, True], ids=str)
def test_json_that_is_no_object_is_the_business_of_the_envelope(value: Any) -> None:
    envelope = runtime().run("text-classifier", value)
    assert not envelope.ok and str(envelope["error"]["code"]).startswith("E1")


def test_wrong_options_are_refused_before_anything_runs() -> None:
    ours = runtime(lambda call: pytest.fail("it ran"))
    wrong: list[tuple[type[Exception], dict[str, Any], str]] = [
        (TypeError, {"tiemout": 1}, "unknown option: `tiemout`"),
        (TypeError, {"seed": "x"}, "the option `seed` cannot be of the type `str`"),
        (ValueError, {"seed": -1}, "the option `seed` is out of range: -1"),
        (ValueError, {"reask": 2**40}, "the option `reask` is out of range"),
        (ValueError, {"timeout": 0}, "`timeout` must be a time in seconds, found: 0"),
        (ValueError, {"timeout": -1.0}, "`timeout` must be a time in seconds"),
        (ValueError, {"timeout": math.nan}, "`timeout` must be a time in seconds"),
        (TypeError, {"timeout": "soon"}, "cannot be of the type `str`"),
        (TypeError, {"receipt": "yes"}, "the option `receipt`"),
        (TypeError, {"user": 5}, "the option `user`"),
        (ValueError, {"text": "both"}, "either an input or a `text`"),
    ]
    for kind, options, message in wrong:
        with pytest.raises(kind) as caught:
            ours.run("text-classifier", INPUT, **options)
        assert message in str(caught.value), options
    with pytest.raises(TypeError):
        ours.run(5, INPUT)  # type: ignore[arg-type]


def test_wrong_parts_of_a_runtime_are_refused() -> None:
    wrong: list[tuple[type[Exception], dict[str, Any], str]] = [
        (TypeError, {"provider": 5}, "`provider` must be a name or a function"),
        (TypeError, {"modules": 5}, "`modules`"),
        (TypeError, {"providr": "openai"}, "providr"),
        (TypeError, {"model": 5}, "`model` must be a string"),
        (ValueError, {"config": {"no_such_key": 1}}, "no_such_key"),
        (FileNotFoundError, {"config": "/no/such/file.yaml"}, "/no/such/file.yaml"),
        (ValueError, {"tools": [lambda *args: 1]}, "named arguments"),
        (cogn.Failure, {"provider": "no-such-service"}, "no-such-service"),
    ]
    for kind, parts, message in wrong:
        with pytest.raises(kind) as caught:
            cogn.Runtime(**{"provider": None, "env": False, **parts})
        assert message in str(caught.value), parts


class Strange(Exception):
    def __str__(self) -> str:
        raise ValueError("not even a text")


def _raise(error: BaseException) -> Any:
    raise error


def _exits(call: Any) -> str:
    raise SystemExit(3)


def _breaks_off(call: Any) -> Any:
    yield TEXT[:60]
    raise ConnectionResetError("gone")


async def _breaks_off_async(call: Any) -> Any:
    yield TEXT[:60]
    raise ConnectionResetError("gone")


DYING: list[tuple[Any, str, str]] = [
    (lambda call: _raise(ValueError("boo")), "E4001", "ValueError: boo"),
    (lambda call: _raise(KeyboardInterrupt()), "E4001", "KeyboardInterrupt"),
    (_exits, "E4001", "SystemExit: 3"),
    (lambda call: _raise(Strange()), "E4001", "Strange"),
    (lambda call: _raise(TimeoutError()), "E2002", ""),
    (lambda call: 5, "E4001", "neither a text nor a dictionary"),
    (lambda call: b"bytes", "E4001", "unsupported type: `bytes`"),
    (lambda call: {"a": {1}}, "E4001", "is not JSON"),
    (lambda call: iter([1, 2]), "E4001", "a piece of an answer is of the type int"),
    (lambda: "takes nothing", "E4001", "TypeError"),
    (lambda call: "", "", ""),
    (lambda call: "no JSON at all", "", ""),
    (_breaks_off, "E2010", "gone"),
    (_breaks_off_async, "E2010", "gone"),
]


@pytest.mark.parametrize(("provider", "code", "message"), DYING, ids=range(len(DYING)))
def test_a_dying_callback_is_an_envelope(provider: Any, code: str, message: str) -> None:
    ours = runtime(provider)
    for envelope in (ours.run("text-classifier", INPUT), asyncio.run(ours.arun("text-classifier", INPUT))):
        assert not envelope.ok
        assert str(envelope["error"]["code"]).startswith(code or "E") and message in str(envelope["error"]), envelope
    last = list(ours.stream("text-classifier", INPUT))[-1]
    assert "error" in last, last


def test_a_callback_that_takes_too_long_is_a_timeout() -> None:
    import threading

    forever = threading.Event()

    async def never(call: Any) -> str:
        await asyncio.Event().wait()
        return TEXT

    for provider in (lambda call: forever.wait(), never):
        envelope = runtime(provider).run("text-classifier", INPUT, timeout=0.05)
        assert envelope["error"]["code"] == "E2002", envelope
    forever.set()


def test_callbacks_see_the_context_of_their_caller() -> None:
    import contextvars

    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
    seen: list[str] = []

    def provider(call: Any) -> str:
        seen.append(who.get())
        return TEXT

    async def async_provider(call: Any) -> str:
        seen.append(who.get())
        return TEXT

    who.set("me")
    for each in (provider, async_provider):
        ours = runtime(each)
        ours.run("text-classifier", INPUT)
        asyncio.run(ours.arun("text-classifier", INPUT))
        list(ours.stream("text-classifier", INPUT))
    assert seen == ["me"] * 6


def test_a_callback_may_run_modules_itself() -> None:
    inner = runtime()

    def provider(call: Any) -> Any:
        return {**ANSWER, "data": inner.run("text-classifier", INPUT).unwrap()}

    async def async_provider(call: Any) -> Any:
        return {**ANSWER, "data": (await inner.arun("text-classifier", INPUT)).unwrap()}

    for each in (provider, async_provider):
        assert runtime(each).run("text-classifier", INPUT).unwrap() == DATA
