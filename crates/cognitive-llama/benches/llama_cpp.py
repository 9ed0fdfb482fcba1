"""The same measurements as engine.rs with llama.cpp: same file, same text, same threads, best of five.

    python llama_cpp.py WEIGHTS TEXT
"""

import sys
import time

# Python looks in the folder of a script first, where this file would hide the package of the same name.
sys.path.pop(0)

import llama_cpp

RUNS = 5
GENERATED = 64


def resident():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) // 1000 for line in status if line.startswith("VmRSS:"))


def load(path, threads):
    return llama_cpp.Llama(
        path, n_ctx=2048, n_batch=512, n_threads=threads, n_threads_batch=threads, verbose=False
    )


def prompt(llama, tokens):
    best = 0.0
    for _ in range(RUNS):
        llama.reset()
        start = time.perf_counter()
        llama.eval(tokens)
        best = max(best, len(tokens) / (time.perf_counter() - start))
    return best


def generate(llama, tokens):
    best = 0.0
    for _ in range(RUNS):
        llama.reset()
        llama.eval(tokens[:100])
        token = llama.sample(temp=0.0)
        start = time.perf_counter()
        for _ in range(GENERATED):
            llama.eval([token])
            token = llama.sample(temp=0.0)
        best = max(best, GENERATED / (time.perf_counter() - start))
    return best


def main():
    path, text = sys.argv[1:3]
    print(f"engine         llama.cpp (llama-cpp-python {llama_cpp.__version__})")
    for threads in (1, 2):
        start = time.perf_counter()
        llama = load(path, threads)
        if threads == 1:
            print(f"load           {(time.perf_counter() - start) * 1e3:8.0f} ms")
            print(f"RSS after load {resident():8} MB")
        tokens = llama.tokenize(text.encode(), add_bos=False, special=False)
        for length in (100, 1000):
            print(f"prompt {length:5} x{threads}{prompt(llama, tokens[:length]):9.0f} tokens/s")
        print(f"generate  64 x{threads}{generate(llama, tokens):9.0f} tokens/s")
        llama.close()


main()
