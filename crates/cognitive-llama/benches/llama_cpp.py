"""The measurements of engine.rs with llama.cpp: same file, same tokens, same threads, one measurement at a time.

    python llama_cpp.py WEIGHTS

Reads one order per line, `load`, `prompt THREADS LENGTH` or `generate THREADS COUNT`, and answers each with a number: seconds and
megabytes for `load`, tokens per second for the others. The tokens are the first line.
"""

import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests/llama_cpp"))

import llama


def resident():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) // 1000 for line in status if line.startswith("VmRSS:"))


def prompt(model, tokens):
    model.reset()
    start = time.perf_counter()
    model.feed(tokens)
    model.row()
    return len(tokens) / (time.perf_counter() - start)


def generate(model, tokens, count):
    model.reset()
    model.feed(tokens[:100])
    token = int(model.row().argmax())
    start = time.perf_counter()
    for _ in range(count):
        model.feed([token])
        token = int(model.row().argmax())
    return count / (time.perf_counter() - start)


def main():
    tokens = json.loads(sys.stdin.readline())
    model = llama.Llama(sys.argv[1])
    for line in sys.stdin:
        order, *numbers = line.split()
        if order == "load":
            print(model.load_time, resident(), flush=True)
            continue
        threads, count = map(int, numbers)
        model.set_threads(threads)
        rate = prompt(model, tokens[:count]) if order == "prompt" else generate(model, tokens, count)
        print(rate, flush=True)


main()
