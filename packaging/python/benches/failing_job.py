"""A job that may be killed at any moment, on each engine: rows in, envelopes out, and what is answered is not asked again. docs/columns.md
shows the same. `failures.py` starts it, kills it, and counts.

`python failing_job.py ENGINE ROWS.parquet ANSWERS-FOLDER WORKERS-FOLDER`: rows have `id` and `text`; answers have these, `input_hash` and
`env`. Each process that asks leaves its number in the last folder.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

os.environ.update(DO_NOT_TRACK="1", DAFT_ANALYTICS_ENABLED="0", RAY_USAGE_STATS_ENABLED="0")
# The number of rows that are stored together, and asked again together if the process died before.
BATCH = 500


def classifier(workers: str) -> tuple[Any, Any]:
    """The function that asks, and the one that gives hashes."""
    import cogn

    def noted(text: Any) -> Any:
        """The row as it is, and a note that this process is at work."""
        Path(workers, str(os.getpid())).touch()
        return text

    runtime = {"provider": "openai", "model": "stub", "config": {"audit": {"enabled": False}}}
    classify = cogn.udf("text-classifier", runtime=runtime, concurrency=64)
    # A process that computes hashes runs no modules.
    return classify(noted), classify.input_hash


def whole_files(answers: str) -> list[str]:
    """The results of earlier jobs. A file that was cut off has no end, and what it holds is asked again."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = []
    for file in sorted(Path(answers).rglob("*.parquet")):
        try:
            pq.read_metadata(file)
            files.append(str(file))
        except (pa.ArrowInvalid, OSError):
            file.unlink()
    return files


def with_ray(rows: str, answers: str, workers: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    import ray.data

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    (classify, input_hash), done = classifier(workers), whole_files(answers)
    data = ray.data.read_parquet(rows, override_num_blocks=2).map_batches(input_hash.batches("text"), batch_format="pyarrow")
    if done:
        known = pa.concat_tables([pq.read_table(file, columns=["id", "input_hash"]) for file in done])
        data = data.map_batches(without(ray.put(known)), batch_format="pyarrow", batch_size=None)
    data = data.repartition(target_num_rows_per_block=BATCH)
    data.map_batches(classify.batches("text"), batch_format="pyarrow", batch_size=BATCH).write_parquet(answers)
    ray.shutdown()


def without(known: Any) -> Callable[[Any], Any]:
    """An anti-join with a table that every worker has."""
    import ray

    return lambda table: table.join(ray.get(known), ["id", "input_hash"], join_type="left anti")


def with_daft(rows: str, answers: str, workers: str) -> None:
    """In one process, where that process is what can die."""
    import daft

    (classify, input_hash), done = classifier(workers), whole_files(answers)
    frame = daft.read_parquet(rows).with_column("input_hash", input_hash(daft.col("text")))
    if done:
        known = daft.read_parquet(done).select("id", "input_hash")
        frame = frame.join(known, on=["id", "input_hash"], how="anti")
    # Small files: one that is not at its end yet is lost.
    with daft.execution_config_ctx(parquet_target_filesize=64 << 10):
        frame.into_batches(BATCH).with_column("env", classify(daft.col("text"))).write_parquet(answers, write_mode="append")
    # A task that a second worker took over may have been written by the first one already.
    every = daft.read_parquet(whole_files(answers)).collect()
    once = every.distinct("id", "input_hash").collect()
    if len(once) < len(every):
        once.write_parquet(answers, write_mode="overwrite")


def with_daft_on_ray(rows: str, answers: str, workers: str) -> None:
    import daft
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    daft.set_runner_ray()
    with_daft(rows, answers, workers)
    ray.shutdown()


def with_spark(rows: str, answers: str, workers: str) -> None:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.pandas.types import from_arrow_schema

    os.environ["PYSPARK_PYTHON"] = sys.executable
    # A task is tried four times; what it has written counts when it ends, and not only when all have.
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH),
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    }
    builder = SparkSession.builder.master("local[2,4]").config(map=settings)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    (classify, input_hash), done = classifier(workers), whole_files(answers)
    column = pa.schema([("id", pa.int64()), ("text", pa.string()), ("input_hash", pa.string())])
    frame = spark.read.parquet(rows).mapInArrow(mapped(input_hash.batches("text")), from_arrow_schema(column))
    if done:
        frame = frame.join(spark.read.parquet(*done).select("id", "input_hash"), ["id", "input_hash"], "left_anti")
    frame = frame.select("id", "text", "input_hash").repartition(max(1, frame.count() // BATCH))
    answered = frame.mapInArrow(mapped(classify.batches("text")), from_arrow_schema(column.append(pa.field("env", classify.type))))
    answered.write.mode("append").parquet(answers)
    spark.stop()


def mapped(add_column: Callable[[Any], Any]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The batches that Spark passes and expects: batches."""

    def each(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            yield from add_column(pa.Table.from_batches([batch])).to_batches()

    return each


ENGINES: dict[str, Callable[[str, str, str], None]] = {
    "ray": with_ray,
    "daft": with_daft,
    "daft-on-ray": with_daft_on_ray,
    "spark": with_spark,
}

if __name__ == "__main__":
    ENGINES[sys.argv[1]](*sys.argv[2:5])
