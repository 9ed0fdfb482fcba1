"""Starts `cogn mcp`, lists the tools, calls every module, cancels a call and prints what it saw. Usage: client.py WORLD"""

import asyncio
import json
import sys

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main() -> None:
    world = json.load(open(sys.argv[1], encoding="utf-8"))
    server = StdioServerParameters(command=world["command"], args=world["args"], env=world["env"])
    seen = {"results": {}, "progress": []}

    async def progress(_done, _total, message):
        seen["progress"].append(message)

    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        seen["tools"] = [tool.name for tool in tools]
        seen["schemas"] = sum(1 for tool in tools if (tool.output_schema or {}).get("type") == "object")
        seen["prompts"] = [prompt.name for prompt in (await session.list_prompts()).prompts]
        for call in world["calls"]:
            # It raises if the structured content does not fit the schema of the tool.
            result = await session.call_tool(call["module"], call["input"], progress_callback=progress)
            seen["results"][call["module"]] = {
                "blocks": [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content],
                "structured": result.structured_content,
                "is_error": result.is_error,
            }

        # The model holds this call. A line on the standard input says that it does.
        async with anyio.create_task_group() as group:

            async def held():
                await session.call_tool(world["held"]["module"], world["held"]["input"])
                seen["cancelled"] = False

            group.start_soon(held)
            await anyio.to_thread.run_sync(sys.stdin.readline)
            group.cancel_scope.cancel()
        seen.setdefault("cancelled", True)
        print(json.dumps(seen), flush=True)
        await anyio.to_thread.run_sync(sys.stdin.read)


asyncio.run(main())
