"""Runs `words` on a server over three transports with the usual Python clients; prints the chunks of each as JSON.

Usage: clients.py http://127.0.0.1:PORT
Needs the packages httpx, httpx-sse and websockets.
"""

import asyncio
import json
import sys

import httpx
import websockets
from httpx_sse import connect_sse

BASE = sys.argv[1]
INPUT = {"text": "winter snow"}


def last(chunk):
    return "final" in chunk or "error" in chunk


def events():
    with httpx.Client(trust_env=False) as client:
        headers = {"accept": "text/event-stream"}
        with connect_sse(client, "POST", f"{BASE}/api/run/words", json=INPUT, headers=headers) as source:
            return [event.json() for event in source.iter_sse()]


def lines():
    with httpx.Client(trust_env=False) as client:
        headers = {"accept": "application/x-ndjson"}
        with client.stream("POST", f"{BASE}/api/run/words", json=INPUT, headers=headers) as response:
            return [json.loads(line) for line in response.iter_lines() if line]


async def socket():
    async with websockets.connect(BASE.replace("http", "ws") + "/ws", proxy=None) as connection:
        await connection.send(json.dumps({"type": "run", "id": "a", "module": "words", "input": INPUT}))
        chunks = []
        while not chunks or not last(chunks[-1]):
            chunks.append(json.loads(await connection.recv()))
        return chunks


print(json.dumps({"events": events(), "lines": lines(), "socket": asyncio.run(socket())}))
