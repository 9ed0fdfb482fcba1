"""Forks, the end of the interpreter during a run, and what an import costs. Each case is a separate process: none may crash."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from typing import Any

import pytest

from answers import DATA, INPUT, runtime
from silent_service import SilentService

PATIENCE = 120


def script(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "faulthandler", "-c", text, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")


FORK = """
import os, sys, threading, asyncio, cogn
TEXT = sys.argv[1]
def provider(call): return TEXT
async def aprovider(call): return TEXT
async def both(runtime):
    return (await runtime.arun("text-classifier", {"text": "x"})).ok
runtimes = [cogn.Runtime(provider=each, env=False) for each in (provider, aprovider)]
for runtime in runtimes:
    assert runtime.run("text-classifier", {"text": "x"}).ok
    assert asyncio.run(both(runtime))
stream = runtimes[0].stream("text-classifier", {"text": "x"})
next(stream)
# Other threads are at work in the middle of it.
stop = threading.Event()
def work():
    while not stop.is_set():
        assert runtimes[0].run("text-classifier", {"text": "x"}).ok
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
children = []
for _ in range(5):
    child = os.fork()
    if child == 0:
        try:
            for runtime in runtimes:
                assert runtime.run("text-classifier", {"text": "x"}).ok
                assert asyncio.run(both(runtime))
            try:
                next(stream)
            except RuntimeError as error:
                assert "child of a fork" in str(error)
            else:
                raise AssertionError("a stream of the parent went on")
            del stream
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
stop.set()
for thread in threads: thread.join()
assert list(stream)[-1]["data"], "the parent goes on"
assert runtimes[0].run("text-classifier", {"text": "x"}).ok
print(codes)
"""


@needs_fork
def test_a_child_of_a_fork_starts_anew() -> None:
    from answers import TEXT

    done = script(FORK, TEXT)
    assert done.returncode == 0 and done.stdout == "[0, 0, 0, 0, 0]\n", done.stdout + done.stderr


def _in_child(_: int) -> Any:
    return _SHARED.run("text-classifier", INPUT)


_SHARED = runtime()


@needs_fork
def test_a_pool_of_forked_workers_hands_back_envelopes() -> None:
    assert _SHARED.run("text-classifier", INPUT).ok
    with multiprocessing.get_context("fork").Pool(2) as pool:
        envelopes = pool.map(_in_child, range(6))
    assert [envelope.unwrap() for envelope in envelopes] == [DATA] * 6


ENDINGS = {
    "a daemon thread waits in a run": """
threading.Thread(target=lambda: runtime.run(*ASK), daemon=True).start()
begun()
""",
    "a daemon thread waits in a stream": """
threading.Thread(target=lambda: list(runtime.stream(*ASK)), daemon=True).start()
begun()
""",
    "a stream is left open": """
stream = runtime.stream(*ASK)
while "chunk" not in next(stream):
    pass
begun()
""",
    "a task of asyncio is left behind": """
async def main():
    asyncio.ensure_future(runtime.arun(*ASK))
    await asyncio.to_thread(begun)
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
""",
    "a sync callback sleeps": """
threading.Thread(target=lambda: mine(sleeper).run(*ASK), daemon=True).start()
entered.wait()
""",
    "an async callback waits": """
threading.Thread(target=lambda: mine(waiter).run(*ASK), daemon=True).start()
entered.wait()
""",
    "many callbacks come and go": """
def work():
    ours = mine(lambda call: "{}")
    while True:
        ours.run(*ASK)
        entered.set()
for _ in range(8):
    threading.Thread(target=work, daemon=True).start()
entered.wait()
""",
    "the program exits from within": """
threading.Thread(target=lambda: runtime.run(*ASK), daemon=True).start()
begun()
sys.exit(7)
""",
    "a run is asked for when all is over": """
import atexit
def late():
    try:
        mine(lambda call: "{}").run(*ASK)
    except RuntimeError as error:
        print(error)
# Registered before the package, so called after it.
order.append(late)
""",
}

BEFORE = """
import sys, atexit
order = []
atexit.register(lambda: [each() for each in order])
import asyncio, threading, time, cogn
ASK = ("summarizer", {"text": "x"})
runtime = cogn.Runtime(**eval(sys.argv[1]))
entered = threading.Event()
def begun():
    print("begun", flush=True)
    sys.stdin.readline()
def mine(provider):
    return cogn.Runtime(provider=provider, env=False)
def sleeper(call):
    entered.set()
    time.sleep(1000)
async def waiter(call):
    entered.set()
    await asyncio.Event().wait()
"""


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_interpreter_ends_in_the_middle_of_a_run(ending: str) -> None:
    with SilentService() as service:
        command = [sys.executable, "-X", "faulthandler", "-c", BEFORE + ENDINGS[ending], repr(service.settings)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as child:
            if "begun()" in ENDINGS[ending] or "begun)" in ENDINGS[ending]:
                assert child.stdout and child.stdout.readline() == "begun\n"
                service.wait_asked()
            said, errors = child.communicate("\n", PATIENCE)
        expected = 7 if "sys.exit" in ENDINGS[ending] else 0
        assert child.returncode == expected, (child.returncode, said, errors)
        assert "Fatal" not in errors and "panicked" not in errors, errors
        if "late" in ENDINGS[ending]:
            assert "the interpreter is shutting down" in said


def test_an_import_starts_no_thread_and_reads_no_configuration() -> None:
    text = """
import sys, threading, cogn
print(threading.active_count(), "asyncio" in sys.modules, "pydantic" in sys.modules)
import os
print(len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1)
"""
    done = script(text)
    assert done.stdout == "1 False False\n1\n", done.stdout + done.stderr


def test_a_second_interpreter_of_the_process_is_refused() -> None:
    text = """
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    raise SystemExit(0)
import cogn
other = interpreters.create()
try:
    interpreters.run_string(other, "import cogn")
except Exception as error:
    assert "ImportError" in repr(error), repr(error)
else:
    raise AssertionError("two interpreters share the library")
assert cogn.Runtime(provider=lambda call: "{}", env=False).run("text-classifier", {"text": "x"})["error"]
"""
    done = script(text)
    assert done.returncode == 0, done.stdout + done.stderr
