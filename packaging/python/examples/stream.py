"""An answer while it is written: chunks as the specification has them, and data that grows. Leaving the loop cancels the run."""

import asyncio

import cogn


async def main(runtime: cogn.Runtime | None = None) -> None:
    ours = runtime or cogn.Runtime()
    async for chunk in ours.astream("summarizer", {"text": "Snow fell all night. The trains stood still."}):
        if "chunk" in chunk:
            print(chunk["chunk"].get("delta", ""), end="", flush=True)
    print()

    summarise = cogn.module("summarizer", runtime=ours)
    async for partial in summarise.stream(text="Snow fell all night. The trains stood still."):
        print(partial.get("summary", "…"))


if __name__ == "__main__":
    asyncio.run(main())
