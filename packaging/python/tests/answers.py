"""An answer of `text-classifier`, and providers that give it in every way there is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import cogn

ANSWER: dict[str, Any] = {
    "ok": True,
    "meta": {"confidence": 0.9, "risk": "low", "explain": "It shines."},
    "data": {"rationale": "All texts do.", "sentiment": "positive", "label": "joy"},
}
DATA = ANSWER["data"]
TEXT = json.dumps(ANSWER)
PIECES = [TEXT[start : start + 16] for start in range(0, len(TEXT), 16)]
INPUT = {"text": "It rained."}


def as_text(call: Any) -> str:
    return TEXT


def as_dict(call: Any) -> dict[str, Any]:
    return ANSWER


def as_list(call: Any) -> list[str]:
    return PIECES


def as_generator(call: Any) -> Iterator[str]:
    yield from PIECES


def as_reply(call: Any) -> cogn.Reply:
    return cogn.Reply(TEXT, model="m1", usage=(7, 9))


async def as_coroutine(call: Any) -> str:
    await asyncio.sleep(0)
    return TEXT


async def as_async_generator(call: Any) -> AsyncIterator[str]:
    for piece in PIECES:
        await asyncio.sleep(0)
        yield piece


def as_awaitable(call: Any) -> Any:
    return as_coroutine(call)


def as_async_iterator(call: Any) -> Any:
    return as_async_generator(call)


class AsObject:
    name = "mine"
    model = "object"

    def __call__(self, call: Any) -> str:
        return TEXT


WAYS = [
    as_text,
    as_dict,
    as_list,
    as_generator,
    as_reply,
    as_coroutine,
    as_async_generator,
    as_awaitable,
    as_async_iterator,
    AsObject(),
]


def runtime(provider: Any = as_text, **parts: Any) -> cogn.Runtime:
    """One that reads neither environment nor files."""
    return cogn.Runtime(provider=provider, env=False, **parts)
