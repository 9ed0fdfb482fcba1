"""Tools that are Python functions, called by a model that can call functions: a service of the usual kind on 127.0.0.1."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest

import cogn
from answers import ANSWER

MODULE = """name: clerk
version: 1.0.0
responsibility: Answers questions about orders
tier: exploration
tools:
  allowed: [order_status, order_total, broken]
policies:
  network: allow
"""


class Service(ThreadingHTTPServer):
    """Asks for the tool that it is told to ask for, and then answers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.wants = ("order_status", '{"number": 7}')
        self.heard: list[Any] = []


class Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        results = [turn["content"] for turn in body["messages"] if turn["role"] == "tool"]
        if results:
            self.server.heard.append(json.loads(results[-1]))
            message: dict[str, Any] = {"role": "assistant", "content": json.dumps(ANSWER)}
        else:
            name, arguments = self.server.wants
            self.server.heard.append([tool["function"] for tool in body.get("tools", [])])
            call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}
            message = {"role": "assistant", "content": None, "tool_calls": [{"index": 0, **call}]}
        reason = "stop" if results else "tool_calls"
        event = {"id": "1", "model": "stub", "choices": [{"index": 0, "delta": message, "finish_reason": reason}]}
        said = f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def clerk(tmp_path: Path) -> Path:
    folder = tmp_path / "clerk"
    folder.mkdir()
    (folder / "module.yaml").write_text(MODULE)
    (folder / "prompt.md").write_text("Answer.\n")
    (folder / "schema.json").write_text('{"input": {"type": "object"}, "data": {"type": "object"}}')
    return tmp_path


def order_status(number: int, detail: Literal["short", "long"] = "short") -> dict[str, Any]:
    """Says how far an order is."""
    return {"number": number, "status": "sent", "detail": detail}


@cogn.tool(needs=["network"], timeout=5)
async def order_total(numbers: list[int]) -> list[int]:
    """Adds up orders."""
    return [sum(numbers)]


def broken() -> None:
    """Always fails."""
    raise LookupError("the archive is closed")


def ask(service: Service, modules: Path) -> Any:
    url = f"http://127.0.0.1:{service.server_port}/v1"
    ours = cogn.Runtime(
        provider="openai-compatible",
        model="stub",
        config={"base_url": url},
        env=False,
        modules=modules,
        tools=[order_status, order_total, broken],
    )
    envelope = ours.run("clerk", {"question": "Where is it?"})
    assert envelope.ok, envelope
    return service.heard[-1]


def test_a_model_calls_functions_of_the_program(service: Service, clerk: Path) -> None:
    assert ask(service, clerk) == {"number": 7, "status": "sent", "detail": "short"}
    offered = {tool["name"]: tool for tool in service.heard[0]}
    assert offered["order_status"]["description"] == "Says how far an order is."
    schema = offered["order_status"]["parameters"]
    assert schema["required"] == ["number"] and schema["properties"]["detail"] == {"enum": ["short", "long"]}
    service.wants = ("order_total", '{"numbers": [1, 2, 3]}')
    assert ask(service, clerk) == [6]


def test_a_tool_that_dies_or_is_misused_is_told_to_the_model(service: Service, clerk: Path) -> None:
    service.wants = ("broken", "{}")
    assert "LookupError: the archive is closed" in json.dumps(ask(service, clerk))
    service.wants = ("order_status", '{"number": "seven"}')
    assert "number" in json.dumps(ask(service, clerk)), "the function heard nothing of it"


def test_a_tool_stays_a_function_and_says_what_is_wrong_with_it() -> None:
    assert cogn.tool(order_status)(3)["number"] == 3
    wrong: list[tuple[Any, str]] = [
        (cogn.tool(order_status, name="not a name"), "invalid tool name"),
        (cogn.tool(order_status, parameters={"type": "array"}), "`type` must be `object`"),
        (cogn.tool(order_status, needs=["magic"]), "unknown need of a tool: `magic`"),
        (cogn.tool(order_status, timeout=-1), "must be a time in seconds"),
    ]
    for tool, message in wrong:
        with pytest.raises(ValueError, match=message):
            cogn.Runtime(provider=lambda call: "", env=False, tools=[tool])
    with pytest.raises(ValueError, match="duplicate tool name"):
        cogn.Runtime(provider=lambda call: "", env=False, tools=[order_status, order_status])
    with pytest.raises(ValueError, match="pass `parameters`"):
        cogn.tool(lambda when: 1, parameters=None) and cogn.Tool(_odd)


def _odd(when: threading.Event) -> None:
    """Takes what no schema describes."""
