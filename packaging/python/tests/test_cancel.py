"""A cancellation reaches the model: `break`, `close`, `cancel`, a timeout of asyncio and Ctrl-C close the connection to the
service, which sees it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import cogn
from answers import INPUT, PIECES, TEXT, runtime
from silent_service import PATIENCE, SilentService

SUMMARY = ("summarizer", {"text": "Snow fell all night."})


@pytest.fixture
def service() -> Iterator[SilentService]:
    with SilentService() as silent:
        yield silent


def test_leaving_a_stream_hangs_up(service: SilentService) -> None:
    ours = cogn.Runtime(**service.settings)
    for chunk in ours.stream(*SUMMARY):
        if "chunk" in chunk:
            break
    service.wait_closed()
    with ours.stream(*SUMMARY) as chunks:
        assert any("chunk" in chunk for chunk in chunks)
    service.wait_closed()
    kept = ours.stream(*SUMMARY)
    assert any("chunk" in chunk for chunk in kept)
    kept.close()
    service.wait_closed()


def test_leaving_an_async_stream_hangs_up(service: SilentService) -> None:
    async def leave() -> None:
        ours = cogn.Runtime(**service.settings)
        async for chunk in ours.astream(*SUMMARY):
            if "chunk" in chunk:
                break
        await asyncio.to_thread(service.wait_closed)
        chunks = ours.astream(*SUMMARY)
        while "chunk" not in await chunks.__anext__():
            pass
        await chunks.aclose()
        await asyncio.to_thread(service.wait_closed)

    asyncio.run(leave())


def test_cancelling_a_task_hangs_up(service: SilentService) -> None:
    async def cancel() -> None:
        ours = cogn.Runtime(**service.settings)
        task = asyncio.create_task(ours.arun(*SUMMARY))
        await asyncio.to_thread(service.wait_asked)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(service.wait_closed)
        async def consume() -> None:
            async for _ in ours.astream(*SUMMARY):
                pass

        task = asyncio.create_task(consume())
        await asyncio.to_thread(service.wait_asked)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(service.wait_closed)

    asyncio.run(cancel())


def test_the_end_of_an_event_loop_hangs_up(service: SilentService) -> None:
    async def begin() -> None:
        ours = cogn.Runtime(**service.settings)
        kept.append(asyncio.create_task(ours.arun(*SUMMARY)))
        await asyncio.to_thread(service.wait_asked)

    kept: list[Any] = []
    asyncio.run(begin())
    service.wait_closed()
    assert kept[0].cancelled()


INTERRUPTED = """
import sys, cogn
settings = eval(sys.argv[1])
runtime = cogn.Runtime(**settings)
try:
    if sys.argv[2] == "run":
        runtime.run("summarizer", {"text": "x"})
    elif sys.argv[2] == "stream":
        for chunk in runtime.stream("summarizer", {"text": "x"}):
            pass
    else:
        import asyncio
        asyncio.run(runtime.arun("summarizer", {"text": "x"}))
except KeyboardInterrupt:
    print("interrupted", flush=True)
    # The interpreter is as good as before.
    runtime = cogn.Runtime(provider=lambda call: "{}", env=False)
    print(runtime.run("text-classifier", {"text": "x"}).ok, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("way", ["run", "stream", "arun"])
def test_ctrl_c_hangs_up_and_is_a_keyboard_interrupt(service: SilentService, way: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED, repr(service.settings), way]
    # The process that started the tests may ignore Ctrl-C, and children inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdin and child.stdout
            service.wait_asked()
            os.kill(child.pid, signal.SIGINT)
            assert child.stdout.readline() == "interrupted\n"
            service.wait_closed()
            assert child.stdout.readline() == "False\n"
            child.stdin.close()
            assert child.wait(PATIENCE) == 0
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_async_callback_is_cancelled_with_its_run() -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def provider(call: Any) -> str:
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return TEXT

    async def cancel() -> None:
        task = asyncio.create_task(runtime(provider).arun("text-classifier", INPUT))
        await asyncio.to_thread(begun.wait, PATIENCE)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await asyncio.to_thread(cancelled.wait, PATIENCE)

    asyncio.run(cancel())


def test_a_generator_is_closed_when_nobody_wants_its_next_piece() -> None:
    closed, go_on = threading.Event(), threading.Event()

    def provider(call: Any) -> Any:
        try:
            yield PIECES[0]
            yield "".join(PIECES[1:-1])
            assert go_on.wait(PATIENCE)
            while True:
                yield " "
        finally:
            closed.set()

    for chunk in runtime(provider).stream("text-classifier", INPUT):
        if "chunk" in chunk:
            break
    go_on.set()
    assert closed.wait(PATIENCE)


def test_other_coroutines_and_threads_go_on_while_a_model_works(service: SilentService) -> None:
    ours = cogn.Runtime(**service.settings)
    waiting = threading.Thread(target=lambda: ours.run(*SUMMARY), daemon=True)
    waiting.start()
    service.wait_asked()
    # The GIL is free: this thread computes while the other waits.
    assert sum(range(100_000)) == 4999950000 and waiting.is_alive()

    async def main() -> None:
        task = asyncio.create_task(ours.arun(*SUMMARY))
        await asyncio.to_thread(service.wait_asked)
        turns = 0
        for _ in range(1000):
            await asyncio.sleep(0)
            turns += 1
        assert turns == 1000 and not task.done()
        task.cancel()

    asyncio.run(main())
    service.hang_up()
    waiting.join(PATIENCE)
    assert not waiting.is_alive()
