"""Writes `blocks.json`: random blocks of each type, and the numbers that the package `gguf` reads out of them.

    pip install gguf
    python blocks.py
"""

import json
import pathlib
import random

import gguf
import numpy

# The position of the halves in each type. They must have an ordinary size to be worth comparing.
HALVES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
}
COUNT = 2


def main():
    rng = random.Random(1)
    cases = []
    for name, places in HALVES.items():
        kind = gguf.GGMLQuantizationType[name]
        _, size = gguf.GGML_QUANT_SIZES[kind]
        raw = bytearray(rng.randbytes(COUNT * size))
        for block in range(COUNT):
            for place in places:
                half = numpy.float16(rng.uniform(0.0005, 0.01)).tobytes()
                raw[block * size + place : block * size + place + 2] = half
        numbers = gguf.dequantize(numpy.frombuffer(bytes(raw), dtype=numpy.uint8), kind)
        cases.append({"type": name, "bytes": raw.hex(), "numbers": [float(f"{x:.9g}") for x in numbers.ravel()]})
    path = pathlib.Path(__file__).with_name("blocks.json")
    path.write_text(json.dumps(cases, separators=(",", ":")) + "\n", encoding="utf-8")


main()
