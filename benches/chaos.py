"""Three servers behind nginx, on one PostgreSQL and one Redis, while every part is killed in turn.

    cargo build --release && python3 benches/chaos.py --cogn target/release/cogn --seconds 60

Checks afterwards that every answer has its `call` record, and its `run` record or the warning `AUDIT`. The records of a
server that was killed within the same second may be missing. Ends with 1 if a rule is broken, and always within the
given time and half a minute. Needs nginx and PostgreSQL; without Redis the servers share no limits. Only the standard
library is used, and only this machine is reached.
"""

import argparse
import collections
import http.client
import http.server
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

KEY = "the-key-of-the-chaos-0123"
ROOT = pathlib.Path(__file__).resolve().parent.parent
ANSWER = {
    "ok": True,
    "meta": {"confidence": 0.9, "risk": "low", "explain": "e"},
    "data": {"rationale": "r", "summary": "s"},
}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Model(http.server.BaseHTTPRequestHandler):
    """A model that answers after a moment, and fails for one request in twenty."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        time.sleep(random.uniform(0.01, 0.2))
        if random.random() < 0.05:
            self.send_response(500)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        piece = {"model": "stub", "choices": [{"index": 0, "delta": {"content": json.dumps(ANSWER)}}]}
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        body = "".join(f"data: {json.dumps(event)}\n\n" for event in (piece, end)) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


class Part:
    """A process that can be killed and started again."""

    def __init__(self, name, command, environment=None, user=None):
        self.name, self.command, self.environment, self.user = name, command, environment, user
        self.killed_at = []
        self.start()

    def start(self):
        more = {"user": self.user} if self.user else {}
        self.process = subprocess.Popen(
            self.command, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, **more,
        )

    def kill(self):
        self.killed_at.append(time.time())
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()


def postgres(folder):
    """Starts a database; as another user if this one is root, whom PostgreSQL refuses."""
    user = "nobody" if os.geteuid() == 0 else None
    data, port = folder / "pg", free_port()
    data.mkdir()
    if user:
        os.chmod(folder, 0o755)
        shutil.chown(data, user)
    more = {"user": user} if user else {}
    words = ["initdb", "-D", data, "-U", "cogn", "-A", "trust", "--no-sync"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, **more)
    command = ["postgres", "-D", data, "-p", str(port), "-k", data, "-c", "listen_addresses=127.0.0.1"]
    part = Part("postgres", command, user=user)
    until(lambda: socket.create_connection(("127.0.0.1", port), 1).close(), "PostgreSQL")
    return part, f"postgres://cogn@127.0.0.1:{port}/postgres?sslmode=disable"


def until(check, what):
    for _ in range(200):
        try:
            return check()
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{what} does not start")


def balancer(folder, ports):
    """nginx with the shipped configuration."""
    port = free_port()
    site = (ROOT / "packaging/compose/balancer.conf").read_text().replace("listen 8080", f"listen 127.0.0.1:{port}")
    for number, own in enumerate(ports, 1):
        site = site.replace(f"cogn-{number}:8000 resolve", f"127.0.0.1:{own}")
    site = re.sub(r"resolver .*\n", "", site)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = f"daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log; events {{}}\n"
    (folder / "nginx.conf").write_text(f"{text}http {{ access_log off;\n{temporary}{site}}}\n")
    return Part("nginx", ["nginx", "-c", folder / "nginx.conf", "-p", folder]), port


class Load(threading.Thread):
    """One client that asks again and again, and remembers the answers."""

    def __init__(self, port, stop, number):
        super().__init__(daemon=True)
        self.port, self.stop, self.number = port, stop, number
        self.answers, self.lost = [], collections.Counter()

    def run(self):
        asked = 0
        while not self.stop.is_set():
            asked += 1
            streams = asked % 3 == 0
            try:
                self.ask(f"text {self.number}-{asked}", streams)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.lost[type(error).__name__] += 1
                time.sleep(0.2)

    def ask(self, text, streams):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
        headers["accept"] = "application/x-ndjson" if streams else "application/json"
        body = json.dumps({"input": {"text": text}, "_options": {"no_cache": True}})
        connection.request("POST", "/api/run/summarizer", body, headers)
        response = connection.getresponse()
        told = response.read().decode()
        connection.close()
        if response.status == 502 and not told.startswith("{"):
            self.lost["502 of nginx"] += 1
            return
        envelope = json.loads(told.strip().splitlines()[-1])
        meta = envelope.get("meta") or {}
        trace = meta.get("trace_id") or response.getheader("cogn-trace-id")
        warned = any(each.get("code") == "AUDIT" for each in meta.get("warnings") or [])
        ok = bool(envelope.get("ok") or envelope.get("final"))
        self.answers.append((trace, ok, warned, time.time(), response.status))


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--cogn", default="target/release/cogn")
    words.add_argument("--seconds", type=int, default=60)
    words.add_argument("--clients", type=int, default=12)
    given = words.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cogn-chaos-"))
    parts = []
    try:
        sys.exit(run(given, folder, parts))
    finally:
        for part in reversed(parts):
            part.stop()
        shutil.rmtree(folder, ignore_errors=True)


def run(given, folder, parts):
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    model.daemon_threads = True
    # A server that is killed leaves its requests.
    model.handle_error = lambda *_: None
    threading.Thread(target=model.serve_forever, daemon=True).start()
    database, address = postgres(folder)
    parts.append(database)
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "COGNITIVE_DB": address, "COGNITIVE_API_KEY": KEY,
        "OPENAI_API_KEY": "none", "COGN_OFFLINE": "1",
    }
    if shutil.which("redis-server"):
        port = free_port()
        parts.append(Part("redis", ["redis-server", "--port", str(port), "--save", "", "--dir", folder]))
        until(lambda: socket.create_connection(("127.0.0.1", port), 1).close(), "Redis")
        environment["COGN_SERVE_SHARED"] = f"redis://127.0.0.1:{port}"
    else:
        print("without Redis: the servers share no limits")
    ports = [free_port() for _ in range(3)]
    program = str(pathlib.Path(given.cogn).resolve())
    service = f"http://127.0.0.1:{model.server_address[1]}/v1"
    for port in ports:
        command = [program, "serve", "--port", str(port), "--quiet", "--rate", "0", "--streams", "0"]
        command += ["--provider", "openai", "--model", "stub", "--base-url", service]
        parts.append(Part("server", command, environment))
        until(lambda: socket.create_connection(("127.0.0.1", port), 1).close(), "a server")
    nginx, port = balancer(folder, ports)
    parts.append(nginx)
    until(lambda: socket.create_connection(("127.0.0.1", port), 1).close(), "nginx")

    stop = threading.Event()
    clients = [Load(port, stop, number) for number in range(given.clients)]
    for client in clients:
        client.start()
    ends, kills, turn = time.time() + given.seconds, collections.Counter(), 0
    while time.time() + 6 < ends:
        time.sleep(3)
        # Servers most often, each other part now and then.
        servers, others = [part for part in parts if part.name == "server"], [
            part for part in parts if part.name != "server"
        ]
        part = others[turn // 3 % len(others)] if turn % 3 == 2 else servers[turn % 3]
        turn += 1
        kills[part.name] += 1
        part.kill()
        time.sleep(1)
        part.start()
    time.sleep(max(0, ends - time.time()))
    stop.set()
    for client in clients:
        client.join(35)
    # What is still queued is written when the servers end.
    for part in [part for part in parts if part.name == "server"]:
        part.stop()
    return judge(program, environment, clients, parts, kills)


def judge(program, environment, clients, parts, kills):
    out = subprocess.run([program, "audit", "export"], env=environment, check=True, capture_output=True, text=True)
    events = collections.defaultdict(collections.Counter)
    for line in out.stdout.splitlines():
        record = json.loads(line)
        events[record["trace_id"]][record["event"]] += 1
    verified = subprocess.run([program, "audit", "verify"], env=environment, capture_output=True, text=True)
    # A server or the database that was killed takes along what it had not written.
    killed = [moment for part in parts if part.name in ("server", "postgres") for moment in part.killed_at]
    counts, broken = collections.Counter(), []
    for client in clients:
        counts.update({f"lost: {what}": count for what, count in client.lost.items()})
        for trace, ok, warned, at, status in client.answers:
            counts["answers" if ok else f"failures ({status})"] += 1
            seen = events.get(trace, {})
            excused = warned or any(-1 <= at - moment <= 3 for moment in killed)
            if ok and not seen.get("call") and not excused:
                broken.append(f"{trace}: no `call` record")
            if ok and not seen.get("run") and not excused:
                broken.append(f"{trace}: no `run` record and no warning")
            if seen.get("run", 0) > 1:
                broken.append(f"{trace}: {seen['run']} `run` records")
            counts["with both records"] += bool(ok and seen.get("call") and seen.get("run"))
            counts["with the warning"] += bool(ok and warned)
    counts.update({f"kills: {name}": count for name, count in kills.items()})
    for what, count in sorted(counts.items()):
        print(f"{what}: {count}")
    print(verified.stdout.strip())
    if verified.returncode:
        broken.append("`cogn audit verify` fails")
    if counts["answers"] == 0:
        broken.append("no run was answered")
    for each in broken[:20]:
        print(f"BROKEN {each}")
    return 1 if broken else 0


if __name__ == "__main__":
    main()
