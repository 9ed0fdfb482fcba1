"""A column of 10,000 rows, 1 of 100 failing, through each engine that is installed: every row has an envelope, failures are values.

`python columns.py [--rows N] [--engines pandas,polars,daft,ray]` prints a table and ends with 1 if a row has no envelope, or another one
than its own. The model is a stub on this machine, which answers after 20 ms.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
from stub_service import StubService  # noqa: E402

os.environ.update(DO_NOT_TRACK="1", DAFT_ANALYTICS_ENABLED="0", RAY_USAGE_STATS_ENABLED="0")

# The faults of the failing rows, in turn: no value, an unreadable answer, a refusal of the service.
FAULTS: list[tuple[str | None, str]] = [(None, "E1001"), ("NONSENSE {}", "E1000"), ("REFUSED {}", "E4001")]


def texts(rows: int) -> list[str | None]:
    def text(index: int) -> str | None:
        fault = FAULTS[index // 100 % 3][0] if index % 100 == 99 else "row {}"
        return fault.format(index) if fault else None

    return [text(index) for index in range(rows)]


def expected(rows: int) -> list[str | None]:
    return [FAULTS[index // 100 % 3][1] if index % 100 == 99 else None for index in range(rows)]


def with_pandas(udf: Any, column: list[Any]) -> Iterable[Any]:
    import pandas as pd

    frame = pd.DataFrame({"text": column})
    frame["env"] = udf(frame["text"])
    return list(frame["env"])


def with_polars(udf: Any, column: list[Any]) -> Iterable[Any]:
    import polars as pl

    return list(pl.DataFrame({"text": column}).with_columns(env=udf(pl.col("text")))["env"])


def with_daft(udf: Any, column: list[Any]) -> Iterable[Any]:
    import daft

    frame = daft.from_pydict({"text": column})
    return [row["env"] for row in frame.with_column("env", udf(daft.col("text"))).to_pylist()]


def with_ray(udf: Any, column: list[Any]) -> Iterable[Any]:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.execution_options.preserve_order = True
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        data = ray.data.from_items([{"text": text} for text in column], override_num_blocks=8)
        return [row["env"] for row in data.map_batches(udf.batches("text"), batch_format="pyarrow", batch_size=None).take_all()]
    finally:
        ray.shutdown()


ENGINES: dict[str, Callable[[Any, list[Any]], Iterable[Any]]] = {
    "pandas": with_pandas,
    "polars": with_polars,
    "daft": with_daft,
    "ray": with_ray,
}


def columns_udf(concurrency: int) -> Any:
    import cogn

    runtime = {"provider": "openai", "model": "stub", "config": {"audit": {"enabled": False}}}
    return cogn.udf("text-classifier", runtime=runtime, concurrency=concurrency)


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--rows", type=int, default=10_000)
    options.add_argument("--engines", default=",".join(ENGINES))
    options.add_argument("--concurrency", type=int, default=64)
    given = options.parse_args()
    holds = True
    print(f"{given.rows} rows, 1 of 100 failing, {given.concurrency} runs at once in a process, a stub of 20 ms")
    print(f"{'':18} {'seconds':>8} {'rows/s':>8} {'ok':>7} {'failed':>7} {'asked':>7}")
    for name in given.engines.split(","):
        if importlib.util.find_spec(name) is None:
            print(f"{name:18} is not installed")
            continue
        with StubService(0.02) as stub:
            os.environ.update(OPENAI_API_KEY="none", OPENAI_BASE_URL=stub.base)
            udf = columns_udf(given.concurrency)
            began = time.perf_counter()
            envelopes = list(ENGINES[name](udf, texts(given.rows)))
            took = time.perf_counter() - began
            asked = stub.stats()["requests"]
        codes = [None if each["ok"] else each["error"]["code"] for each in envelopes]
        as_expected = codes == expected(given.rows)
        holds &= as_expected
        failed = sum(code is not None for code in codes)
        label = f"{name} {importlib.metadata.version(name)}"
        figures = f"{took:8.1f} {given.rows / took:8.0f} {len(codes) - failed:7} {failed:7} {asked:7}"
        print(f"{label:18} {figures}   {'PASS' if as_expected else 'FAIL'}")
    return 0 if holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
