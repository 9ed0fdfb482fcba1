"""The API that the specification prints (v2.5, section 10.2)."""

import asyncio
from typing import Any

from cognitive import CognitiveRuntime


async def main(**options: Any) -> None:
    runtime = CognitiveRuntime(streaming=True, multimodal=True, **options)
    text = {"text": "What a wonderful day!"}
    async for chunk in runtime.execute_stream("text-classifier", text):
        print(chunk)
    print(runtime.execute("text-classifier", text))


if __name__ == "__main__":
    asyncio.run(main())
