"""A provider of the program's own: any function that takes a call and gives text, at once or in pieces, sync or async."""

import asyncio
from collections.abc import AsyncIterator

import cogn


async def enthusiast(call: cogn.Call) -> AsyncIterator[str]:
    """In the place of a client: `client.chat(messages=call.messages, temperature=call.temperature)`."""
    yield '{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "It shines."}, '
    await asyncio.sleep(0)
    yield '"data": {"rationale": "All texts do.", "sentiment": "positive", "label": "joy"}}'


def main() -> None:
    # Reads neither environment nor files: the bundled modules, this provider, no stores.
    runtime = cogn.Runtime(provider=enthusiast, env=False)
    print(runtime.run("text-classifier", {"text": "It rained."}).json())


if __name__ == "__main__":
    main()
