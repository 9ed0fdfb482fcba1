"""A model service on 127.0.0.1 that begins an answer and falls silent. It says when it was asked and when the caller hung up."""

from __future__ import annotations

import json
import socket
import threading
from types import TracebackType
from typing import Any

# Longer than any of these tests takes, also on a busy machine; reached only where something is wrong.
PATIENCE = 120.0

_BEGINNING = {"choices": [{"delta": {"content": '{"ok": true, "data": {"rationale": "It begins, and '}}]}


class SilentService:
    """Serves connections until it is closed."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._asked = threading.Semaphore(0)
        self._closed = threading.Semaphore(0)
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        host, port = self._listener.getsockname()
        return f"http://{host}:{port}/v1"

    @property
    def settings(self) -> dict[str, Any]:
        """The settings with which a runtime calls this service."""
        return {"provider": "openai-compatible", "model": "stub", "config": {"base_url": self.url}, "env": False}

    def wait_asked(self) -> None:
        """Until one more request has come and its answer has begun."""
        assert self._asked.acquire(timeout=PATIENCE), "nobody asked"

    def wait_closed(self) -> None:
        """Until one more caller has hung up."""
        assert self._closed.acquire(timeout=PATIENCE), "the connection was not closed"

    def hang_up(self) -> None:
        """Breaks all connections, which ends the runs that wait for them."""
        for connection in self._connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # It is closed already.

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            request = b""
            while b"\r\n\r\n" not in request or not _is_whole(request):
                more = connection.recv(65536)
                if not more:
                    self._closed.release()
                    return
                request += more
            head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            event = b"data: " + json.dumps(_BEGINNING).encode() + b"\n\n"
            connection.sendall(head + f"{len(event):x}\r\n".encode() + event + b"\r\n")
            self._asked.release()
            # Nothing more is said. The client now closes the connection.
            try:
                while connection.recv(65536):
                    pass
            except ConnectionError:
                pass
            self._closed.release()

    def __enter__(self) -> SilentService:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._listener.close()


def _is_whole(request: bytes) -> bool:
    head, _, body = request.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) >= int(line.split(b":")[1])
    return True
