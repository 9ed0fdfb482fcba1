"""Tools of the program's own: functions that a model may call if the module asks for them and its policies let it."""

from typing import Any

import cogn


@cogn.tool(needs=["network"], timeout=3)
async def order_status(number: int) -> dict[str, Any]:
    """Says how far an order is."""
    return {"number": number, "status": "sent"}


def runtime() -> cogn.Runtime:
    """One whose modules may list `order_status` under `tools: {allowed: […]}`; see docs/tools.md."""
    return cogn.Runtime(tools=[order_status])


if __name__ == "__main__":
    print([name for name in runtime().names()])
