"""Jobs on data engines that lose a worker, and jobs that die whole: every row has exactly one envelope in the end.

`python failures.py [--rows N] [--engines ray,daft-on-ray,daft,spark]` makes rows of which 1 of 100 fails, and runs `failing_job.py` twice for
each engine. Once a process that works is killed (kill -9) after a third of the answers, and the engine goes on by itself. Once the whole job
is killed, and the same command is given again: only rows without an envelope are asked. Prints a table, and ends with 1 if a row has no
envelope, several, or another one than its own, or if a row was asked again that had one. Everything is on this machine.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "tests"))
from columns import expected, texts  # noqa: E402
from failing_job import whole_files  # noqa: E402
from stub_service import StubService  # noqa: E402

# The processes of an engine, and whether it continues after one of its workers was killed.
ENGINES: dict[str, tuple[list[str], bool]] = {
    "ray": (["ray"], True),
    "daft-on-ray": (["daft", "ray"], True),
    # Its only process is the job itself.
    "daft": (["daft"], False),
    "spark": (["pyspark"], True),
}


class Wrong(Exception):
    """The violated expectations."""


class Job:
    """Rows, answers, and the job between them."""

    def __init__(self, engine: str, rows: int, folder: Path, stub: StubService) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.engine, self.count, self.stub = engine, rows, stub
        self.rows, self.answers, self.workers = folder / "rows.parquet", folder / "answers", folder / "workers"
        self.answers.mkdir()
        self.workers.mkdir()
        pq.write_table(pa.table({"id": range(rows), "text": pa.array(texts(rows), pa.string())}), self.rows)
        # A row without a text is refused before any request.
        self.needed = sum(text is not None for text in texts(rows))

    @contextlib.contextmanager
    def started(self) -> Iterator[subprocess.Popen[bytes]]:
        """The job, which is gone afterwards with everything that it has started, as if its machine had lost power."""
        environment = {**os.environ, "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": self.stub.base, "NO_PROXY": "127.0.0.1"}
        command = [sys.executable, str(HERE / "failing_job.py"), self.engine, str(self.rows), str(self.answers), str(self.workers)]
        with (self.answers.parent / "job.log").open("ab") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            yield process
        finally:
            for pid in family(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
            for note in self.workers.iterdir():
                note.unlink()

    def at_work(self, job: subprocess.Popen[bytes]) -> int:
        """The process that has taken up a row last."""
        notes = sorted(self.workers.iterdir(), key=lambda note: note.stat().st_mtime_ns)
        workers = [int(note.name) for note in notes if int(note.name) != job.pid and alive(int(note.name))]
        if not workers:
            raise Wrong("no worker was left that could be killed")
        return workers[-1]

    def loses_a_worker(self) -> dict[str, int]:
        """A process that works is killed after a third of the answers; the job goes on and ends well."""
        with self.started() as job:
            until(lambda: self.stub.stats()["answered"] >= self.needed // 3, job, "a third of the answers")
            os.kill(self.at_work(job), signal.SIGKILL)
            if code := job.wait():
                raise Wrong(f"the job ended with {code}: {self.log()}")
        asked = self.stub.stats()["requests"]
        return {**self.judged(), "asked": asked, "again": asked - self.needed}

    def dies_whole(self) -> dict[str, int]:
        """The job is killed after half of the answers and given again."""
        with self.started() as job:
            until(lambda: self.stub.stats()["answered"] >= self.needed // 2 and self.kept(), job, "half of the answers")
        first, kept = self.stub.stats()["requests"], self.kept()
        answered = set(kept)
        rest = sum(text is not None and row not in answered for row, text in enumerate(texts(self.count)))
        with self.started() as job:
            if code := job.wait():
                raise Wrong(f"the second job ended with {code}: {self.log()}")
        second = self.stub.stats()["requests"] - first
        if second != rest:
            raise Wrong(f"{second} rows were asked the second time, and {rest} had no envelope")
        return {**self.judged(), "kept": len(kept), "asked": first + second, "again": first + second - self.needed}

    def kept(self) -> list[int]:
        """The rows that have an envelope, as often as they have one."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows: list[int] = []
        for file in Path(self.answers).rglob("*.parquet"):
            with contextlib.suppress(pa.ArrowInvalid, OSError):
                rows += pq.read_table(file, columns=["id"]).column("id").to_pylist()
        return rows

    def judged(self) -> dict[str, int]:
        """Each row has one envelope, its own."""
        import pyarrow.parquet as pq

        codes: dict[int, Any] = {}
        envelopes = 0
        for file in whole_files(str(self.answers)):
            for row in pq.ParquetFile(file).read(columns=["id", "env"]).to_pylist():
                envelopes += 1
                codes[row["id"]] = None if row["env"]["ok"] else row["env"]["error"]["code"]
        if envelopes != self.count or len(codes) != self.count:
            raise Wrong(f"{self.count} rows have {envelopes} envelopes, {len(codes)} rows have one")
        if [codes[row] for row in range(self.count)] != expected(self.count):
            raise Wrong("a row has the envelope of another")
        return {"envelopes": envelopes, "failed": sum(code is not None for code in codes.values())}

    def log(self) -> str:
        return (self.answers.parent / "job.log").read_text(errors="replace")[-2000:]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def family(root: int) -> list[int]:
    """A process and all its children, itself first, so that it starts no others."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            parents.setdefault(int((entry / "stat").read_text().rpartition(")")[2].split()[1]), []).append(int(entry.name))
    members = [root]
    for member in members:
        members += parents.get(member, [])
    return members


def until(holds: Callable[[], Any], job: subprocess.Popen[bytes], what: str) -> None:
    """Waits for it. A job that has ended will not bring it any more."""
    while not holds():
        if job.poll() is not None:
            raise Wrong(f"the job ended with {job.returncode} before there was {what}")
        time.sleep(0.05)


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--engines", default=",".join(ENGINES))
    options.add_argument("--delay", type=float, default=0.02, help="seconds before the stub answers")
    given = options.parse_args()
    holds = True
    print(f"{given.rows} rows, 1 of 100 failing, a stub of {given.delay * 1000:.0f} ms; asked again: beyond once for each row")
    print(f"{'':13} {'what dies':10} {'seconds':>8} {'envelopes':>10} {'failed':>7} {'kept':>7} {'asked':>8} {'again':>7}")
    for engine in given.engines.split(","):
        needs, goes_on = ENGINES[engine]
        if lacks := [name for name in needs if importlib.util.find_spec(name) is None]:
            print(f"{engine:13} is not installed: {', '.join(lacks)}")
            continue
        for what in ["a worker", "the job"] if goes_on else ["the job"]:
            with tempfile.TemporaryDirectory() as folder, StubService(given.delay) as stub:
                job, began = Job(engine, given.rows, Path(folder), stub), time.perf_counter()
                try:
                    seen = job.loses_a_worker() if what == "a worker" else job.dies_whole()
                except Wrong as wrong:
                    holds = False
                    print(f"{engine:13} {what:10} FAIL: {wrong}", flush=True)
                    continue
                took = time.perf_counter() - began
            figures = f"{seen['envelopes']:10} {seen['failed']:7} {seen.get('kept', ''):>7} {seen['asked']:8} {seen['again']:7}"
            print(f"{engine:13} {what:10} {took:8.1f} {figures}   PASS", flush=True)
    return 0 if holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
