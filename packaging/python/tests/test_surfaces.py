"""The same run through the command line, HTTP and Python: the same bytes, ids and times aside. Every golden test of every bundled
module, with a service on 127.0.0.1 that answers with the recorded replies."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import cogn

MODULES = Path(__file__).resolve().parents[3] / "modules"
FOLDERS = [manifest.parent for manifest in sorted(MODULES.glob("*/module.yaml"))]

# What differs from run to run.
VARYING = re.compile(r'"(trace_id|latency_ms|processing_time_ms|session_id|timestamp|created_at|expires_at)":("[^"]*"|[0-9.e+-]+)')
# What a caller at the other end of a network is told instead of a command.
HINT = re.compile(r'"suggestion":"(?:[^"\\]|\\.)*",?')


class Service(ThreadingHTTPServer):
    """Knows a module by the first line of its prompt, and says what was recorded for it in the case at hand."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies: dict[str, str] = {}
        self.prompts = {
            (folder / "prompt.md").read_text(encoding="utf-8").splitlines()[0]: folder.name for folder in FOLDERS
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A program that ends closes its connections without a word."""


class Handler(BaseHTTPRequestHandler):
    server: Service
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        system = json.dumps(body["messages"][0]["content"], ensure_ascii=False)
        module = next((name for line, name in self.server.prompts.items() if line in system), "")
        content = self.server.replies.get(module, "nothing is recorded")
        choice = {"index": 0, "delta": {"content": content}, "finish_reason": "stop"}
        said = f"data: {json.dumps({'id': '1', 'model': 'stub', 'choices': [choice]})}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: Any) -> None:
        pass


# Its parts run at the same time, and the first that fails ends the others (S-26): what there is of them then differs from run to run.
FAILS_IN_PARALLEL = {("multi-reviewer", "too-short.input.json")}


def cases() -> list[tuple[str, Path]]:
    found = [(case.parents[1].name, case) for case in sorted(MODULES.glob("*/tests/*.input.json"))]
    return [(module, case) for module, case in found if (module, case.name) not in FAILS_IN_PARALLEL]


def recorded(module: str, case: Path) -> dict[str, str]:
    stem = case.name.removesuffix(".input.json")
    replies = {}
    for path in case.parent.glob(f"{stem}*.reply.txt"):
        part = path.name.removeprefix(stem).removesuffix(".reply.txt")
        replies[part.removeprefix(".") or module] = path.read_text(encoding="utf-8")
    return replies


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()


def environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": os.environ["PATH"]}


@pytest.fixture(scope="module")
def server(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("server")
    command = [cogn.binary(), "serve", "--port", "0", "--rate", "0", *flags(service)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment(home), cwd=home, text=True) as child:
        assert child.stderr
        line = next(line for line in child.stderr if "listening" in line)
        threading.Thread(target=child.stderr.read, daemon=True).start()
        yield line.split("http://")[1].split(",")[0].split()[0]
        child.terminate()


def flags(service: Service) -> list[str]:
    return ["--provider", "openai-compatible", "--model", "stub", "--base-url", service.url]


def by_command_line(service: Service, module: str, case: Path, home: Path) -> str:
    command = [cogn.binary(), "run", module, str(case), "--json", *flags(service)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment(home), cwd=home)
    return done.stdout.strip()


def by_http(server: str, module: str, case: Path) -> str:
    url = f"http://{server}/api/run/{module}"
    request = urllib.request.Request(url, case.read_bytes(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return str(response.read().decode().strip())
    except urllib.error.HTTPError as refused:
        return refused.read().decode().strip()


def same(text: str) -> str:
    return VARYING.sub(r'"\1":0', text)


def test_the_same_bytes_by_command_line_http_and_python(service: Service, server: str, tmp_path: Path) -> None:
    ours = cogn.Runtime(provider="openai-compatible", model="stub", config={"base_url": service.url}, env=False)
    succeeded = set()
    for module, case in cases():
        service.replies = recorded(module, case)
        python = ours.run(module, json.loads(case.read_text(encoding="utf-8")))
        # A module that only other modules may run is refused to a person; so is it here, everywhere alike.
        written = same(python.json())
        assert written == same(by_command_line(service, module, case, tmp_path)), case
        far = same(by_http(server, module, case))
        if python.ok:
            succeeded.add(module)
            assert written == far, case
        else:
            assert HINT.sub("", written) == HINT.sub("", far), case
    every = {folder.name for folder in FOLDERS}
    print(f"{len(cases())} cases of {len(every)} modules, {len(succeeded)} of them with answers: the same bytes")
    assert {module for module, _ in cases()} == every and len(succeeded) >= 10, every - succeeded
