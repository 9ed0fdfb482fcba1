"""Starts `cogn mcp`, calls every module and prints what it saw. Usage: client.py WORLD"""

import asyncio
import json
import sys

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
        seen["tools"] = [tool.name for tool in (await session.list_tools()).tools]
        seen["prompts"] = [prompt.name for prompt in (await session.list_prompts()).prompts]
        for call in world["calls"]:
            result = await session.call_tool(call["module"], call["input"], progress_callback=progress)
            seen["results"][call["module"]] = {
                "text": result.content[0].text,
                "structured": result.structured_content,
                "is_error": result.is_error,
            }
    print(json.dumps(seen))


asyncio.run(main())
