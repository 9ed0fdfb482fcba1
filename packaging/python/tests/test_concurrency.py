"""A thousand runs at once on one event loop: none is lost, others keep running, memory stays, and a cancelled run closes its
connection. Nothing here depends on how fast the machine is."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys

import pytest

import cogn

from stub_service import StubService

RUNS = 1000
ROUNDS = 3


def runtime_on(service: StubService, monkeypatch: pytest.MonkeyPatch) -> cogn.Runtime:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", service.base)
    # The record of each run would take longer than the run.
    return cogn.Runtime(provider="openai", model="stub", config={"audit": {"enabled": False}})


async def ask(runtime: cogn.Runtime, index: int) -> tuple[int, bool]:
    return index, (await runtime.arun("text-classifier", {"text": f"row {index}"}, timeout=60)).ok


async def count_ticks(ticks: list[int]) -> None:
    """Another coroutine, which does nothing but take its turn."""
    while True:
        await asyncio.sleep(0)
        ticks[0] += 1


def in_use() -> tuple[int, int]:
    """Bytes that native code holds, and blocks that Python holds. Unlike the size of the process these do not tell what an allocator
    keeps for later. Without bytes where the system does not count them."""
    gc.collect()
    count = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if count is None:
        return 0, sys.getallocatedblocks()
    count.restype = MallocInfo
    counted = count()
    return counted.uordblks + counted.hblkhd, sys.getallocatedblocks()


class MallocInfo(ctypes.Structure):
    """The memory statistics of glibc, in bytes and pieces."""

    NAMES = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_ = [(name, ctypes.c_size_t) for name in NAMES]


async def thousand(runtime: cogn.Runtime) -> None:
    answers = await asyncio.gather(*(ask(runtime, index) for index in range(RUNS)))
    assert answers == [(index, True) for index in range(RUNS)]


def test_a_thousand_runs_at_once_lose_no_answer_and_starve_nobody(stub_with_delay: StubService, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = runtime_on(stub_with_delay, monkeypatch)

    async def main() -> int:
        ticks = [0]
        other = asyncio.create_task(count_ticks(ticks))
        await thousand(runtime)
        other.cancel()
        return ticks[0]

    ticks = asyncio.run(main())
    counts = stub_with_delay.stats()
    assert (counts["requests"], counts["answered"], counts["closed_early"]) == (RUNS, RUNS, 0)
    # A loop that waited for runs instead of turning would come by once for each of them, at most.
    assert ticks > RUNS, ticks


def test_a_thousand_runs_leave_nothing_behind(stub_with_delay: StubService, monkeypatch: pytest.MonkeyPatch) -> None:
    # With the delay every round needs a thousand connections, and the pool keeps as many of them.
    runtime = runtime_on(stub_with_delay, monkeypatch)

    async def main() -> list[tuple[int, int]]:
        used = []
        for _ in range(ROUNDS):
            await thousand(runtime)
            used.append(in_use())
        return used

    used = asyncio.run(main())
    # The first rounds fill pools. Afterwards a run that left its envelope behind would leave 2,600 bytes and 19 blocks; a connection
    # more in the pool is 20,000 bytes.
    bytes_left, blocks_left = (last - first for first, last in zip(used[1], used[-1]))
    assert bytes_left < (ROUNDS - 2) * RUNS * 1_000, used
    assert blocks_left < (ROUNDS - 2) * RUNS, used


def test_cancelled_runs_close_their_connections(slow_stub: StubService, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = runtime_on(slow_stub, monkeypatch)

    async def main() -> tuple[list[tuple[int, bool]], int]:
        tasks = [asyncio.create_task(ask(runtime, index)) for index in range(RUNS)]
        # Cancel them when the service has them all in its hands, and not before.
        while (await asyncio.to_thread(slow_stub.stats))["requests"] < RUNS:
            await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        ended = await asyncio.gather(*tasks[::2], return_exceptions=True)
        while (await asyncio.to_thread(slow_stub.stats))["closed_early"] < RUNS // 2:
            await asyncio.sleep(0)
        await asyncio.to_thread(slow_stub.release)
        kept = await asyncio.gather(*tasks[1::2])
        return kept, sum(isinstance(each, asyncio.CancelledError) for each in ended)

    kept, cancelled = asyncio.run(main())
    assert kept == [(index, True) for index in range(1, RUNS, 2)]
    assert cancelled == RUNS // 2
    counts = slow_stub.stats()
    assert (counts["requests"], counts["answered"], counts["closed_early"]) == (RUNS, RUNS // 2, RUNS // 2)
