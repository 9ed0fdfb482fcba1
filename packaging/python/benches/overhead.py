"""The cost of a call besides the model: cogn in Python, the same run in Rust, and other libraries, all on one stub in one run.

`python overhead.py` prints a table and ends with 1 if calls of `cogn`, one after the other, cost more than 1.3 times the same run in
Rust, or more processor time than one of the others, also 64 at once. Libraries that are not installed are left out, and said so. The stub
is a separate process, so its work is not counted. All clients are warm, and the rounds alternate, so that a slow moment affects all of
them. All send the same request in about as many words. Like the others, `cogn` keeps no record; a second line shows it with its audit log.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
from stub_service import StubService  # noqa: E402

OTHERS = ["openai", "instructor", "pydantic-ai", "litellm", "baml"]
# `openai` alone reads no schema and repeats nothing; it is shown for comparison.
JUDGED = ["instructor", "pydantic-ai", "litellm", "baml"]
LIMIT = 1.3
WARM_UP = 100


class Client:
    """A process that asks the stub when it is told to."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        word, _, self.version = self._line().partition(" ")
        if word != "ready":
            raise OSError(f"{name} did not start")
        self.rounds: dict[str, list[dict[str, float]]] = {}

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def measure(self, what: str, keep: bool = True) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        took = json.loads(self._line())
        if keep:
            self.rounds.setdefault(what.split()[0], []).append(took)

    def median(self, kind: str, figure: str) -> float:
        return statistics.median(each[figure] for each in self.rounds[kind])

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def rust_program() -> str | None:
    """Builds the same run in Rust; `cargo` reports its path."""
    command = ["cargo", "bench", "--package", "cogn", "--bench", "overhead", "--no-run", "--message-format=json"]
    built = subprocess.run(command, cwd=HERE.parents[2], stdout=subprocess.PIPE, text=True)
    programs = [json.loads(line).get("executable") for line in built.stdout.splitlines() if line.startswith("{")]
    return next((program for program in reversed(programs) if program), None)


def baml_client(folder: Path) -> None:
    """Generates the client, as users of BAML do."""
    import importlib.metadata

    source = (HERE / "classify.baml").read_text().replace("VERSION", importlib.metadata.version("baml-py"))
    (folder / "baml_src").mkdir()
    (folder / "baml_src" / "classify.baml").write_text(source)
    command = [str(Path(sys.executable).with_name("baml-cli")), "generate", "--from", str(folder / "baml_src")]
    subprocess.run(command, check=True, capture_output=True)


def start(names: list[str], base: str, rust: str | None, folder: Path) -> list[Client]:
    environment = {**os.environ, "OPENAI_API_KEY": "none", "BAML_LOG": "off", "DO_NOT_TRACK": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    environment |= {"BAML_CLIENT": str(folder), "OPENAI_BASE_URL": base, "HOME": str(folder)}
    clients = []
    if rust:
        clients.append(Client("rust", [rust, base, str(HERE / "modules")], environment))
    for name in names:
        try:
            if name == "baml":
                baml_client(folder)
            clients.append(Client(name, [sys.executable, str(HERE / "clients.py"), name, base], environment))
        except (OSError, ImportError, subprocess.CalledProcessError) as error:
            print(f"left out: {name}: {error}")
    return clients


def table(clients: list[Client]) -> None:
    print(f"{'':22} {'one after the other':>25} {'64 at once':>25}")
    print(f"{'per call':22} {'processor':>12} {'time':>12} {'processor':>12} {'time':>12}   in microseconds")
    for client in clients:
        figures = [client.median(kind, figure) for kind in ("one", "many") for figure in ("cpu_us", "wall_us")]
        label = f"{client.name} {client.version}"
        print(f"{label:22}" + "".join(f" {figure:12.0f}" for figure in figures))


def verdict(clients: list[Client]) -> bool:
    by_name = {client.name: client for client in clients}
    holds = True
    cogn = by_name["cogn"]
    if "rust" in by_name:
        for kind, words in (("one", "one after the other"), ("many", "64 at once")):
            for figure, name in (("cpu_us", "processor"), ("wall_us", "time")):
                # Of the same round: what disturbs one of them disturbs both.
                pairs = zip(cogn.rounds[kind], by_name["rust"].rounds[kind])
                ratio = statistics.median(mine[figure] / other[figure] for mine, other in pairs)
                # Below 100 microseconds for a whole call, a task and a future of asyncio are a quarter of it.
                judged = kind == "one"
                holds &= ratio <= LIMIT or not judged
                word = "shown" if not judged else "PASS" if ratio <= LIMIT else "FAIL"
                print(f"{word:5} cogn / rust, {words}, {name}: {ratio:.2f}" + (f" (at most {LIMIT})" if judged else ""))
    for name in (name for name in JUDGED if name in by_name):
        for kind, words in (("one", "one after the other"), ("many", "64 at once")):
            mine, other = cogn.median(kind, "cpu_us"), by_name[name].median(kind, "cpu_us")
            holds &= mine < other
            print(f"{'PASS' if mine < other else 'FAIL'}  cogn / {name}, {words}, processor: {mine / other:.2f} (under 1)")
    return holds


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--calls", type=int, default=500)
    options.add_argument("--rust", help="the built bench `overhead` of the crate `cogn`; built without it, left out with `none`")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, StubService() as stub:
        rust = None if given.rust == "none" else given.rust or rust_program()
        clients = start(["cogn", "cogn+audit", *OTHERS], stub.base, rust, Path(folder))
        kinds = [f"one {given.calls}", f"many {given.calls // 64 * 64} 64"]
        for kind in kinds:
            for client in clients:
                client.measure(re.sub(r"\d+", str(max(WARM_UP, 64)), kind, count=1), keep=False)
            for _ in range(given.rounds):
                for client in clients:
                    client.measure(kind)
        table(clients)
        holds = verdict(clients)
        for client in clients:
            client.end()
    return 0 if holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
