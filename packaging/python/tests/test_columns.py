"""Columns: an envelope for every row, in order, whatever is in the row. Engines that are not installed are passed over."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import importlib.util
import json
import os
import pickle
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

import cogn
from cogn import columns
from cogn._arrow import EnvelopeColumn
from cogn._rows import input_of, plain

from stub_service import StubService

# The values that a column may have: (value, whether the run succeeds, the code otherwise).
ROWS: list[tuple[Any, bool, str | None]] = [
    ("The train was on time.", True, None),
    (None, False, "E1001"),
    ("NONSENSE", False, "E1000"),
    (7, False, "E1001"),
    (b"bytes", False, "E1001"),
    ("REFUSED", False, "E4001"),
    ({"text": "A dictionary."}, True, None),
    ({"other": "A dictionary."}, False, "E1001"),
    (object(), False, "E1001"),
    ("The seats are clean.", True, None),
]


@pytest.fixture
def classify(stub: StubService, monkeypatch: pytest.MonkeyPatch) -> cogn.Udf:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", stub.base)
    return cogn.udf("text-classifier", runtime={"provider": "openai", "model": "stub"}, concurrency=8)


def outcome(envelopes: Any) -> list[tuple[bool, Any]]:
    return [(each["ok"], (each["error"] or {}).get("code") if "error" in each else None) for each in envelopes]


EXPECTED = [(ok, code) for _, ok, code in ROWS]


def test_every_row_has_an_envelope_in_its_place(classify: cogn.Udf) -> None:
    envelopes = classify([value for value, _, _ in ROWS])
    assert [isinstance(each, cogn.Envelope) for each in envelopes] == [True] * len(ROWS)
    assert outcome(envelopes) == EXPECTED
    assert outcome(asyncio.run(classify.arun(value for value, _, _ in ROWS))) == EXPECTED


def test_a_provider_that_raises_is_the_failure_of_its_row() -> None:
    def provider(call: Any) -> str:
        if "broken" in call.input:
            raise RuntimeError("no luck")
        return '{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"e"},"data":{"rationale":"r","sentiment":"neutral","label":"l"}}'

    classify = cogn.udf("text-classifier", runtime=cogn.Runtime(provider=provider, env=False), concurrency=4)
    envelopes = classify(["fine", "broken", "fine"])
    assert [each.ok for each in envelopes] == [True, False, True]
    assert "no luck" in envelopes[1].error["message"]


def test_concurrency_is_bounded_and_the_order_is_kept(stub_with_delay: StubService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", stub_with_delay.base)
    classify = cogn.udf("text-classifier", runtime={"provider": "openai", "model": "stub"}, concurrency=5)
    texts = [f"row {index}" if index % 3 else None for index in range(40)]
    assert [each.ok for each in classify(texts)] == [bool(index % 3) for index in range(40)]
    counts = stub_with_delay.stats()
    assert counts["requests"] == 26
    # The question for these counts is a connection as well.
    assert counts["most_open"] <= 6


def waits_for(service: StubService, count: str, number: int) -> None:
    while service.stats()[count] < number:
        pass


def test_cancelling_a_column_closes_its_connections(slow_stub: StubService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", slow_stub.base)
    classify = cogn.udf("text-classifier", runtime={"provider": "openai", "model": "stub"}, concurrency=10)

    async def main() -> None:
        task = asyncio.create_task(classify.arun(["a"] * 30))
        await asyncio.to_thread(waits_for, slow_stub, "requests", 10)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    waits_for(slow_stub, "closed_early", 10)
    assert slow_stub.stats()["requests"] == 10


@pytest.mark.skipif(sys.platform == "win32", reason="a process is sent Ctrl-C by its number")
def test_ctrl_c_ends_a_column(slow_stub: StubService) -> None:
    program = """
import cogn
classify = cogn.udf("text-classifier", runtime={"provider": "openai", "model": "stub"}, concurrency=10)
try:
    classify(["a"] * 30)
except KeyboardInterrupt:
    print("interrupted")
"""
    environment = {**os.environ, "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": slow_stub.base}
    # A shell in the background may have told its children to ignore it.
    program = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{program}"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment) as process:
        waits_for(slow_stub, "requests", 10)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate()
    assert (printed, process.returncode) == ("interrupted\n", 0)
    waits_for(slow_stub, "closed_early", 10)


def test_what_is_wrong_for_all_rows_is_an_exception(classify: cogn.Udf) -> None:
    with pytest.raises(ValueError, match="concurrency"):
        cogn.udf("text-classifier", concurrency=0)
    with pytest.raises(ValueError, match="data"):
        cogn.udf("text-classifier", data="parquet")
    with pytest.raises(TypeError, match="unknown option: `tiemout`"):
        cogn.udf("text-classifier", tiemout=3)(["a"])
    with pytest.raises(cogn.Failure, match="E4006"):
        cogn.udf("no-such-module")(["a"])
    for wrong in ("a text", {"text": "one input"}, 7):
        with pytest.raises(TypeError, match="cogn.run"):
            classify(wrong)
    with pytest.raises(TypeError, match="one column"):
        classify(["a"], ["b"])


def test_named_columns_fixed_members_and_prepare(classify: cogn.Udf, stub: StubService) -> None:
    runtime = {"provider": "openai", "model": "stub"}
    assert [each.ok for each in classify(text=["a", "b"], labels=[["x", "y"], None])] == [True, True]
    fixed = cogn.udf("text-classifier", runtime=runtime, fixed={"labels": ["travel", "x"]})
    assert [each.ok for each in fixed(["a", {"text": "b", "labels": 7}])] == [True, False]

    @cogn.udf("text-classifier", runtime=runtime)
    def shout(row: Any) -> Any:
        return {"text": row["a"].upper()}

    first, second = shout([{"a": "x"}, {"b": "x"}])
    assert first.ok and not second.ok
    assert second.error["message"] == "`prepare` raised KeyError: 'a'"


def test_a_udf_goes_to_other_processes_unless_it_has_a_runtime_of_this_one(classify: cogn.Udf) -> None:
    there = pickle.loads(pickle.dumps(classify))
    assert there(["a"])[0].ok
    assert pickle.loads(pickle.dumps(classify.batches("text"))).into == "env"
    own = cogn.udf("text-classifier", runtime=cogn.Runtime(env=False, provider=lambda call: "{}"))
    with pytest.raises(TypeError, match="as a dictionary or a function"):
        pickle.dumps(own)


def test_values_of_columns_become_json() -> None:
    day = datetime.datetime(2026, 1, 2, 3, 4, 5)
    assert plain(day) == "2026-01-02T03:04:05"
    assert plain(day.date()) == "2026-01-02"
    assert plain(decimal.Decimal("1.50")) == 1.5 and plain(decimal.Decimal("3")) == 3
    assert plain(uuid.UUID(int=1)).endswith("0001")
    assert plain(float("nan")) is None
    assert plain({"a": None, "b": [1, None], "c": {"d": float("nan")}}) == {"b": [1, None], "c": {}}
    assert input_of("x", "text") == {"text": "x"} and input_of(None, "text") == {}
    assert input_of({"text": "x"}, "text") == {"text": "x"}


@pytest.mark.needs("numpy")
def test_values_of_numpy_become_json() -> None:
    import numpy

    assert plain(numpy.array([1, 2])) == [1, 2] and plain(numpy.int64(3)) == 3 and plain(numpy.float64("nan")) is None


@pytest.mark.needs("pyarrow")
def test_the_type_of_data_is_that_of_the_schema(tmp_path: Path) -> None:
    module = tmp_path / "typed"
    module.mkdir()
    (module / "module.yaml").write_text("name: typed\nversion: 1.0.0\nresponsibility: Show types\ntier: exploration\n")
    (module / "prompt.md").write_text("Answer.")
    item = {"type": "object", "properties": {"n": {"type": "integer"}, "of": {"type": "object"}}}
    data = {
        "type": "object",
        "required": ["rationale"],
        "properties": {
            "rationale": {"type": "string"},
            "kind": {"enum": ["a", "b"]},
            "count": {"type": ["integer", "null"]},
            "share": {"type": "number"},
            "sure": {"type": "boolean"},
            "items": {"type": "array", "items": item},
            "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            "names": {"type": "object", "additionalProperties": {"type": "integer"}},
            "node": {"$ref": "#/definitions/node"},
        },
    }
    node = {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/definitions/node"}}}
    schema = {"input": {"type": "object"}, "data": data, "definitions": {"node": node}}
    (module / "schema.json").write_text(json.dumps(schema))
    typed = cogn.udf("typed", runtime={"modules": str(tmp_path), "env": False, "provider": "ollama"})
    fields = {field.name: (str(field.type), field.metadata) for field in typed.type.field("data").type}
    as_json = ("string", {b"cogn": b"json"})
    assert fields == {
        "rationale": ("string", None),
        "kind": ("string", None),
        "count": ("int64", None),
        "share": ("double", None),
        "sure": ("bool", None),
        "items": ("list<item: struct<n: int64, of: string>>", None),
        "either": as_json,
        "names": as_json,
        "node": (NODE, None),
    }
    assert str(cogn.udf("typed", runtime={"modules": str(tmp_path), "env": False, "provider": "ollama"}, data="json").type.field("data").type) == "string"


# A type that contains itself is JSON text where it begins anew.
NODE = "struct<v: int64, next: struct<v: int64, next: string>>"


@pytest.mark.needs("pyarrow")
def test_a_value_that_does_not_fit_its_type_is_null_and_kept_in_json() -> None:
    column = EnvelopeColumn({"struct": [["n", "integer"], ["w", "word"], ["l", {"list": "text"}], ["j", "json"]]})
    good = cogn.Envelope({"ok": True, "meta": {"confidence": 1, "risk": "low", "explain": "e"}, "data": {"n": 3.0, "w": {"custom": "c", "reason": "r"}, "l": ["x"], "j": {"é": 1}}})
    bad = cogn.Envelope({"ok": True, "meta": {"usage": {"input_tokens": 5}}, "data": {"n": 2**70, "w": 7, "l": "x", "j": None, "more": True}})
    rows = column.array([good, bad]).to_pylist()
    assert rows[0]["data"] == {"n": 3, "w": "c", "l": ["x"], "j": '{"é":1}'}
    assert rows[1]["data"] == {"n": None, "w": None, "l": None, "j": None}
    assert json.loads(rows[1]["json"])["data"]["more"] is True
    assert rows[1]["usage"]["input_tokens"] == 5 and rows[0]["usage"] is None


# Rows that every engine can hold in one column of texts.
TEXTS = ["The train was on time.", None, "NONSENSE", "REFUSED", "The seats are clean."]
TEXTS_EXPECTED = [(True, None), (False, "E1001"), (False, "E1000"), (False, "E4001"), (True, None)]


@pytest.mark.needs("pyarrow")
def test_arrow(classify: cogn.Udf) -> None:
    import pyarrow as pa

    for column in (pa.array(TEXTS), pa.chunked_array([TEXTS[:2], TEXTS[2:]]), pa.table({"text": TEXTS})):
        array = classify(column)
        assert array.type == classify.type
        assert outcome(array.to_pylist()) == TEXTS_EXPECTED
    table = classify.batches("text", into="answer")(pa.table({"text": TEXTS, "id": [1, 2, 3, 4, 5]}))
    assert table.column_names == ["text", "id", "answer"]
    assert outcome(classify.batches(text="text")(table).column("env").to_pylist()) == TEXTS_EXPECTED
    assert table.column("answer").to_pylist()[0]["data"]["label"] == "travel"


@pytest.mark.needs("pandas", "pyarrow")
def test_pandas(classify: cogn.Udf) -> None:
    import pandas as pd

    frame = pd.DataFrame({"text": TEXTS}, index=[10, 20, 30, 40, 50])
    frame["env"] = classify(frame["text"])
    assert outcome(frame["env"]) == TEXTS_EXPECTED
    assert list(frame[~frame["env"].struct.field("ok")].index) == [20, 30, 40]
    assert outcome(classify(frame[["text"]])) == outcome(classify(text=frame["text"])) == TEXTS_EXPECTED
    times = cogn.udf("text-classifier", prepare=str, runtime=classify._spec.runtime)(pd.Series(pd.to_datetime(["2026-01-01", None])))
    assert outcome(times) == [(True, None), (True, None)]
    mixed = pd.Series([value for value, _, _ in ROWS], dtype=object)
    assert outcome(classify(mixed)) == EXPECTED


@pytest.mark.needs("polars", "pyarrow")
def test_polars(classify: cogn.Udf) -> None:
    import polars as pl

    frame = pl.DataFrame({"text": TEXTS, "id": range(5)})
    for answered in (
        frame.with_columns(env=classify(pl.col("text"))),
        frame.lazy().with_columns(env=classify(text=pl.col("text"))).collect(),
        frame.lazy().with_columns(env=classify(pl.struct("text"))).collect(engine="streaming"),
        frame.with_columns(classify(frame["text"])),
        frame.with_columns(classify(frame.select("text"))),
    ):
        assert outcome(answered["env"].to_list()) == TEXTS_EXPECTED
        dead = answered.filter(~pl.col("env").struct.field("ok"))
        assert dead["id"].to_list() == [1, 2, 3]


@pytest.mark.needs("daft")
def test_daft(classify: cogn.Udf) -> None:
    import daft

    frame = daft.from_pydict({"text": TEXTS, "id": list(range(5))})
    for expression in (classify(daft.col("text")), classify(text=daft.col("text"))):
        answered = frame.with_column("env", expression).collect()
        assert outcome(row["env"] for row in answered.to_pylist()) == TEXTS_EXPECTED
        assert answered.where(~daft.col("env")["ok"]).to_pydict()["id"] == [1, 2, 3]


@pytest.mark.needs("pandas", "polars", "daft", "pyarrow")
@pytest.mark.parametrize("engine", ["pandas", "polars", "daft"])
def test_one_row_of_a_hundred_fails_and_all_have_their_envelope(engine: str, stub: StubService, monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmark in small."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "benches"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", stub.base)
    bench = importlib.import_module("columns")
    envelopes = bench.ENGINES[engine](bench.columns_udf(16), bench.texts(600))
    assert [None if each["ok"] else each["error"]["code"] for each in envelopes] == bench.expected(600)


def test_the_hash_of_an_input_is_that_of_a_batch(classify: cogn.Udf, tmp_path: Path) -> None:
    texts = ["The train was on time.", "Größe — 1e3", "", "The train was on time."]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"labels": [1.0, 10], "text": text}) + "\n" for text in texts))
    command = [cogn.binary(), "batch", "text-classifier", "rows.jsonl", "-o", "out.jsonl", "--ordered", "--provider", "openai", "--model", "stub"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert classify.input_hash([{"text": text, "labels": [1, 10]} for text in texts]) == [line["input_hash"] for line in lines]
    fixed = cogn.udf("text-classifier", runtime=classify._spec.runtime, fixed={"labels": [1, 10]})
    assert fixed.input_hash(texts) == fixed.input_hash(text=texts) == [line["input_hash"] for line in lines]


def test_what_is_no_input_has_a_hash_too(classify: cogn.Udf) -> None:
    missing, empty, data, other = classify.input_hash([None, {}, b"bytes", b"other"])
    assert missing == empty != data
    assert data == other, "the same reason"

    @cogn.udf("text-classifier", runtime=classify._spec.runtime)
    def broken(row: Any) -> Any:
        return row["text"]

    first, second, text = broken.input_hash([{}, {"a": 1}, {"text": "`prepare` raised KeyError: 'text'"}])
    assert first == second != text
    assert [len(each) for each in (first, text)] == [64, 64]
    with pytest.raises(TypeError, match="one column"):
        classify.input_hash(["a"], ["b"])
    assert pickle.loads(pickle.dumps(classify.input_hash))(["a"]) == classify.input_hash(["a"])


@pytest.mark.needs("pandas", "polars", "daft", "pyarrow")
def test_every_engine_has_a_column_of_hashes(classify: cogn.Udf) -> None:
    import daft
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    known = classify.input_hash(TEXTS)
    assert classify.input_hash(pd.Series(TEXTS)).tolist() == known
    assert classify.input_hash(pl.Series(TEXTS)).to_list() == known
    frame = pl.LazyFrame({"text": TEXTS}).with_columns(input_hash=classify.input_hash(pl.col("text"))).collect()
    assert frame["input_hash"].to_list() == known
    assert daft.from_pydict({"text": TEXTS}).with_column("h", classify.input_hash(daft.col("text"))).to_pydict()["h"] == known
    table = classify.input_hash.batches("text")(pa.table({"text": TEXTS}))
    assert table.column("input_hash").to_pylist() == known


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked up in /proc")
@pytest.mark.parametrize(
    ("engine", "what"),
    [
        pytest.param("daft", "dies_whole", marks=pytest.mark.needs("daft", "pyarrow")),
        pytest.param("ray", "loses_a_worker", marks=pytest.mark.needs("ray")),
        pytest.param("spark", "dies_whole", marks=pytest.mark.needs("pyspark")),
    ],
)
def test_a_job_that_is_killed_has_every_row_once_in_the_end(engine: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmark in small. It asks how far the job is, and kills what it wants to; the end is the same whenever that happens."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "benches"))
    failures = importlib.import_module("failures")
    with StubService() as service:
        seen = getattr(failures.Job(engine, 1200, tmp_path, service), what)()
    assert (seen["envelopes"], seen["failed"]) == (1200, 12)


def test_functions_that_are_made_in_a_loop_are_not_kept_for_ever() -> None:
    for _ in range(columns._MOST_WORKERS + 3):
        cogn.udf("text-classifier", runtime={"env": False, "provider": "ollama"})._worker()
    assert len(columns._workers) == columns._MOST_WORKERS


@pytest.mark.needs("polars", "pandas")
@pytest.mark.needs("pyarrow")
def test_a_query_is_planned_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    planned = cogn.udf("text-classifier", runtime={"provider": "openai"})
    assert planned.type.field("data").type.num_fields == 3
    assert [each.error["code"] for each in planned(["a"]) if each.error] == ["E4001"]


def test_long_columns_are_run_in_parts(classify: cogn.Udf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_PART", 3)
    values = [value for value, _, _ in ROWS]
    assert outcome(classify(values)) == outcome(asyncio.run(classify.arun(values))) == EXPECTED
    if importlib.util.find_spec("pyarrow"):
        array = classify.array(values)
        assert array.num_chunks == 4 and outcome(array.to_pylist()) == EXPECTED
        assert len(classify.array([])) == 0


@pytest.mark.needs("pandas", "polars")
def test_columns_of_two_engines_are_refused(classify: cogn.Udf) -> None:
    import pandas as pd
    import polars as pl

    with pytest.raises(TypeError, match="several engines: pandas, polars"):
        classify(text=pl.col("text"), labels=pd.Series([1]))


@pytest.mark.needs("polars", "pyarrow")
def test_replay_reaches_the_threads_of_engines() -> None:
    import polars as pl

    modules = Path(__file__).resolve().parents[3] / "modules" / "text-classifier"
    if not modules.exists():
        pytest.skip("the bundled modules are in the checkout")
    known = json.loads((modules / "tests" / "free-topic.input.json").read_text())["text"]
    with cogn.replay(modules / "tests"):
        classify = cogn.udf("text-classifier", runtime={"env": False})
        frame = pl.LazyFrame({"text": [known, "never recorded"]}).with_columns(env=classify(pl.col("text")))
        assert outcome(frame.collect(engine="streaming")["env"].to_list()) == [(True, None), (False, "E4001")]
