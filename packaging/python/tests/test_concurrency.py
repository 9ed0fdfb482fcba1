"""A thousand runs at once on one event loop: none is lost, others keep running, memory stays, and a cancelled run closes its
connection. Nothing here depends on how fast the machine is."""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path

import pytest

import cogn

from stub_service import StubService

RUNS = 1000


@pytest.fixture
def runtime(stub_with_delay: StubService, monkeypatch: pytest.MonkeyPatch) -> cogn.Runtime:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", stub_with_delay.base)
    return cogn.Runtime(provider="openai", model="stub")


async def ask(runtime: cogn.Runtime, index: int) -> tuple[int, bool]:
    return index, (await runtime.arun("text-classifier", {"text": f"row {index}"}, timeout=60)).ok


async def count_ticks(ticks: list[int]) -> None:
    """Another coroutine, which does nothing but take its turn."""
    while True:
        await asyncio.sleep(0)
        ticks[0] += 1


def test_a_thousand_runs_at_once_lose_no_answer_and_starve_nobody(runtime: cogn.Runtime, stub_with_delay: StubService) -> None:
    async def main() -> tuple[list[tuple[int, bool]], int]:
        ticks = [0]
        other = asyncio.create_task(count_ticks(ticks))
        answers = await asyncio.gather(*(ask(runtime, index) for index in range(RUNS)))
        other.cancel()
        return answers, ticks[0]

    answers, ticks = asyncio.run(main())
    assert answers == [(index, True) for index in range(RUNS)]
    counts = stub_with_delay.stats()
    assert (counts["requests"], counts["answered"], counts["closed_early"]) == (RUNS, RUNS, 0)
    # A loop that waited for the runs instead of turning would come by once for each of them, at most.
    assert ticks > RUNS, ticks


def test_cancelled_runs_close_their_connections(runtime: cogn.Runtime, slow_stub: StubService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", slow_stub.base)
    runtime = cogn.Runtime(provider="openai", model="stub")

    async def main() -> tuple[list[bool], int]:
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
        assert [index for index, _ in kept] == list(range(1, RUNS, 2))
        return [ok for _, ok in kept], sum(isinstance(each, asyncio.CancelledError) for each in ended)

    answers, cancelled = asyncio.run(main())
    assert answers == [True] * (RUNS // 2)
    assert cancelled == RUNS // 2
    counts = slow_stub.stats()
    assert (counts["requests"], counts["answered"], counts["closed_early"]) == (RUNS, RUNS // 2, RUNS // 2)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory of the process from /proc")
def test_memory_is_flat(runtime: cogn.Runtime) -> None:
    def resident() -> int:
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    async def round() -> None:
        await asyncio.gather(*(ask(runtime, index) for index in range(RUNS)))

    async def main() -> list[int]:
        sizes = []
        for _ in range(6):
            await round()
            sizes.append(resident())
        return sizes

    sizes = asyncio.run(main())
    # The first rounds fill pools. Of the later ones each would add megabytes if anything of a run were kept: an envelope, its
    # dictionary and its connection are more than ten kilobytes.
    assert sizes[-1] - sizes[2] < 8_000_000, sizes
