"""One library that asks the stub, as a process: `python clients.py NAME BASE`. Says `ready VERSION`, then answers each line on its
standard input, `one N` (N calls, one after the other) or `many N WIDTH` (WIDTH at once), with the processor time and the time that a
call took. Ends with its standard input. Imports nothing but the library that it is asked for.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

TEXT = "The new train is quiet, clean and on time. I am really happy with it."
MESSAGES: list[Any] = [{"role": "system", "content": "Name the sentiment and the label of a text."}, {"role": "user", "content": TEXT}]

Clients = tuple[str, Callable[[], Any], Callable[[], Awaitable[Any]]]


def label_class() -> Any:
    from typing import Literal

    from pydantic import BaseModel

    class Label(BaseModel):
        rationale: str
        sentiment: Literal["positive", "negative", "neutral"]
        label: str

    return Label


def cogn_clients(base: str, audit: bool = False) -> Clients:
    import cogn

    os.environ["OPENAI_BASE_URL"] = base
    modules = Path(__file__).resolve().with_name("modules")
    # No other library keeps a record of what it did.
    runtime = cogn.Runtime(provider="openai", model="plain", modules=modules, config={"audit": {"enabled": audit}})
    question = {"text": TEXT}
    return "cogn", lambda: runtime.run("label", question).unwrap(), lambda: runtime.arun("label", question)


def openai_clients(base: str) -> Clients:
    import openai

    label = label_class()
    client, later = openai.OpenAI(base_url=base, api_key="none"), openai.AsyncOpenAI(base_url=base, api_key="none")

    def read(answer: Any) -> Any:
        return label.model_validate_json(answer.choices[0].message.content)

    async def ask() -> Any:
        return read(await later.chat.completions.create(model="plain", messages=MESSAGES))

    return "openai", lambda: read(client.chat.completions.create(model="plain", messages=MESSAGES)), ask


def instructor_clients(base: str) -> Clients:
    import instructor
    import openai

    label = label_class()
    client = instructor.from_openai(openai.OpenAI(base_url=base, api_key="none"))
    later = instructor.from_openai(openai.AsyncOpenAI(base_url=base, api_key="none"))
    question: dict[str, Any] = {"model": "plain", "response_model": label, "messages": MESSAGES}
    return "instructor", lambda: client.create(**question), lambda: later.create(**question)


def pydantic_ai_clients(base: str) -> Clients:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("plain", provider=OpenAIProvider(base_url=base, api_key="none"))
    agent = Agent(model, output_type=label_class(), instructions=MESSAGES[0]["content"])
    return "pydantic-ai-slim", lambda: agent.run_sync(TEXT), lambda: agent.run(TEXT)


def litellm_clients(base: str) -> Clients:
    import litellm

    label = label_class()
    question: dict[str, Any] = {"model": "openai/plain", "api_base": base, "api_key": "none", "messages": MESSAGES, "response_format": label}

    def read(answer: Any) -> Any:
        return label.model_validate_json(answer.choices[0].message.content)

    async def ask() -> Any:
        return read(await litellm.acompletion(**question))

    return "litellm", lambda: read(litellm.completion(**question)), ask


def baml_clients(base: str) -> Clients:
    os.environ["STUB_BASE"] = base
    sys.path.insert(0, os.environ["BAML_CLIENT"])
    from baml_client import b  # type: ignore[import-not-found]
    from baml_client.async_client import b as later  # type: ignore[import-not-found]

    return "baml-py", lambda: b.Classify(TEXT), lambda: later.Classify(TEXT)


CLIENTS: dict[str, Callable[[str], Clients]] = {
    "cogn": cogn_clients,
    "cogn+audit": lambda base: cogn_clients(base, audit=True),
    "openai": openai_clients,
    "instructor": instructor_clients,
    "pydantic-ai": pydantic_ai_clients,
    "litellm": litellm_clients,
    "baml": baml_clients,
}


def version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:  # out of a checkout
        return str(__import__(distribution).__version__)


async def at_once(ask: Callable[[], Awaitable[Any]], calls: int, width: int) -> None:
    async def worker(share: int) -> None:
        for _ in range(share):
            await ask()

    await asyncio.gather(*(worker(calls // width) for _ in range(width)))


def main() -> None:
    name, base = sys.argv[1:]
    distribution, once, ask = CLIENTS[name](base)
    once()
    print("ready", version(distribution), flush=True)
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            kind, calls, *rest = line.split()
            count = int(calls)
            began, processor = time.perf_counter(), time.process_time()
            if kind == "one":
                for _ in range(count):
                    once()
            else:
                runner.run(at_once(ask, count, int(rest[0])))
            took = {"cpu_us": (time.process_time() - processor) / count * 1e6, "wall_us": (time.perf_counter() - began) / count * 1e6}
            print(json.dumps(took), flush=True)


if __name__ == "__main__":
    main()
