"""A service in OpenAI's format on 127.0.0.1, for tests and benchmarks. Answers with fixed text, knows no model, keeps nothing.

`python stub_service.py --delay 0.05` prints its port and ends when its standard input closes, so it never outlives who started it.
`GET /stats` counts what it saw, also connections that were closed before their answer was whole. With `--hold` it answers no request before
`GET /release`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from types import TracebackType
from typing import Any

DATA = {"rationale": "It says so.", "sentiment": "positive", "label": "travel"}
ENVELOPE = {"ok": True, "meta": {"confidence": 0.9, "risk": "low", "explain": "A remark about a train."}, "data": DATA}
# A text with this word gets an answer that no reader accepts, one with the other a refusal of the service.
NONSENSE, REFUSED = "NONSENSE", "REFUSED"


class Counts:
    def __init__(self) -> None:
        self.requests = self.answered = self.closed_early = self.open = self.most_open = 0

    def as_dict(self) -> dict[str, int]:
        return dict(vars(self))


class Held:
    """Answers that wait until they are released."""

    def __init__(self, hold: bool) -> None:
        self.hold = hold
        self.waiting: list[Callable[[], None]] = []

    def release(self) -> None:
        self.hold = False
        for answer in self.waiting:
            answer()
        self.waiting.clear()


class Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, counts: Counts, held: Held, delay: float) -> None:
        self.counts, self.held, self.delay = counts, held, delay
        self.buffer = b""
        self.pending: asyncio.TimerHandle | None = None
        self.is_waiting = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.counts.open += 1
        self.counts.most_open = max(self.counts.open, self.counts.most_open)

    def connection_lost(self, exc: Exception | None) -> None:
        self.counts.open -= 1
        if self.pending:
            self.pending.cancel()
        self.counts.closed_early += self.is_waiting
        self.is_waiting = False

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = 0
        for line in head.split(b"\r\n")[1:]:
            if line[:15].lower() == b"content-length:":
                length = int(line[15:])
        if len(rest) < length:
            return
        self.buffer = rest[length:]
        if head.startswith(b"GET"):
            if head.startswith(b"GET /release"):
                self.held.release()
            self.send(b"200 OK", b"application/json", json.dumps(self.counts.as_dict()).encode())
            return
        self.counts.requests += 1
        self.is_waiting = True
        body = rest[:length]
        if self.held.hold:
            self.held.waiting.append(lambda: self.answer(body))
        elif self.delay:
            self.pending = asyncio.get_running_loop().call_later(self.delay, self.answer, body)
        else:
            self.answer(body)

    def answer(self, body: bytes) -> None:
        if not self.is_waiting:
            return
        self.pending, self.is_waiting = None, False
        self.counts.answered += 1
        if REFUSED.encode() in body:
            self.send(b"400 Bad Request", b"application/json", b'{"error":{"message":"The request was refused.","type":"invalid_request_error"}}')
            return
        request = json.loads(body)
        text = "This is no answer." if NONSENSE.encode() in body else answer_text(body)
        if request.get("stream"):
            self.send(b"200 OK", b"text/event-stream", stream_body(request, text))
        else:
            self.send(b"200 OK", b"application/json", json.dumps(completion(request, text)).encode())

    def send(self, status: bytes, kind: bytes, body: bytes) -> None:
        head = b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (status, kind, len(body))
        self.transport.write(head + body)


def answer_text(body: bytes) -> str:
    """An envelope for a caller that asks for one, else the bare data."""
    return json.dumps(ENVELOPE if b"confidence" in body else DATA)


def usage() -> dict[str, int]:
    return {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}


def completion(request: dict[str, Any], text: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    tools, finish = request.get("tools"), "stop"
    if tools:
        function = {"name": tools[0]["function"]["name"], "arguments": text}
        message = {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
        finish = "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": request.get("model"), "choices": [choice], "usage": usage()}


def stream_body(request: dict[str, Any], text: str) -> bytes:
    def event(delta: dict[str, Any], finish: str | None, counted: bool = False) -> str:
        chunk: dict[str, Any] = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": request.get("model")}
        chunk["choices"] = [] if counted else [{"index": 0, "delta": delta, "finish_reason": finish}]
        if counted:
            chunk["usage"] = usage()
        return f"data: {json.dumps(chunk)}\n\n"

    half = len(text) // 2
    events = [event({"role": "assistant", "content": text[:half]}, None), event({"content": text[half:]}, None), event({}, "stop")]
    events += [event({}, None, counted=True), "data: [DONE]\n\n"]
    return "".join(events).encode()


class StubService:
    """The service as a separate process, until the end of the block."""

    def __init__(self, delay: float = 0.0, hold: bool = False) -> None:
        self.options = ["--delay", str(delay), *(["--hold"] if hold else [])]

    def __enter__(self) -> StubService:
        command = [sys.executable, __file__, *self.options]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.port = int(self.process.stdout.readline())
        self.base = f"http://127.0.0.1:{self.port}/v1"
        return self

    def stats(self, path: str = "stats") -> dict[str, int]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}") as answer:
            counts: dict[str, int] = json.load(answer)
            return counts

    def release(self) -> None:
        """Lets a service that holds its answers back give them."""
        self.stats("release")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


async def serve(delay: float, hold: bool) -> None:
    loop, counts, held = asyncio.get_running_loop(), Counts(), Held(hold)
    server = await loop.create_server(lambda: Connection(counts, held, delay), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()
    loop.add_reader(sys.stdin, ended.set)
    await ended.wait()


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    options.add_argument("--hold", action="store_true", help="answer nobody before `GET /release`")
    given = options.parse_args()
    asyncio.run(serve(given.delay, given.hold))
