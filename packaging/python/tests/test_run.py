"""Runs, in one call and in pieces, sync and async; their options; and what comes back. (API-001, API-002, STREAM-024)"""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import os
import pickle
import threading
from typing import Any

import pytest

import cogn
from answers import ANSWER, DATA, INPUT, TEXT, WAYS, as_generator, as_text, runtime


def _name(way: Any) -> str:
    return getattr(way, "__name__", type(way).__name__)


@pytest.mark.parametrize("provider", WAYS, ids=_name)
def test_every_kind_of_provider_answers_every_kind_of_run(provider: Any) -> None:
    ours = runtime(provider)
    assert ours.run("text-classifier", INPUT)["data"] == DATA
    assert list(ours.stream("text-classifier", INPUT))[-1]["data"] == DATA

    async def all_async() -> None:
        assert (await ours.arun("text-classifier", INPUT)).data == DATA
        chunks = [chunk async for chunk in ours.astream("text-classifier", INPUT)]
        assert chunks[0]["session_id"] and chunks[-1]["data"] == DATA

    asyncio.run(all_async())


def test_an_envelope_is_a_dictionary_with_names() -> None:
    envelope = runtime().run("text-classifier", INPUT)
    assert isinstance(envelope, dict) and envelope["ok"] is True
    assert envelope.ok and envelope.error is None and envelope.partial_data is None
    assert envelope.meta["explain"] == ANSWER["meta"]["explain"] and envelope.unwrap() == DATA
    assert json.loads(envelope.json()) == envelope
    assert envelope.json().startswith('{"ok":true,"meta":{"confidence":0.9,')
    for same in (pickle.loads(pickle.dumps(envelope)), copy.copy(envelope), copy.deepcopy(envelope), envelope.copy()):
        assert type(same) is cogn.Envelope and same == envelope and same.json() == envelope.json()
    envelope["ok"] = "changed"
    assert envelope.json().startswith('{"ok":true'), "what the runtime wrote"


def test_what_is_wrong_is_an_envelope_and_becomes_an_exception_when_it_is_unwrapped() -> None:
    envelope = runtime().run("text-classifier", {})
    assert not envelope.ok and envelope.data is None
    with pytest.raises(cogn.Failure) as caught:
        envelope.unwrap()
    failure = caught.value
    assert failure.code == "E1001" and "`text`" in failure.message and failure.suggestion
    assert failure.recoverable and failure.envelope is envelope and failure.details["violations"]
    assert str(failure).startswith("E1001: ") and "(hint: " in str(failure)
    again = pickle.loads(pickle.dumps(failure))
    assert again.code == "E1001" and again.envelope == envelope
    assert runtime().run("no-such-module", INPUT)["error"]["code"] == "E4006"


def test_options_reach_the_run() -> None:
    seen: list[Any] = []

    def provider(call: Any) -> str:
        seen.append(call)
        return TEXT

    ours = runtime(provider)
    envelope = ours.run("text-classifier", INPUT, seed=7, max_output_tokens=90, timeout=2.5, receipt=True)
    call = seen.pop()
    assert (call.seed, call.max_output_tokens, call.timeout) == (7, 90, 2.5)
    assert envelope.meta["provenance"]
    assert ours.run("text-classifier", text="free text").ok and "free text" in seen.pop().input


def test_the_call_is_an_object_and_a_mapping() -> None:
    seen: list[Any] = []

    def provider(call: Any) -> str:
        seen.append((dict(call), call.messages, call.get("nothing", 1), "input" in call, len(call), repr(call)))
        with pytest.raises(KeyError):
            call["nothing"]
        return TEXT

    provider.dialect = "openai"  # type: ignore[attr-defined]
    assert runtime(provider).run("text-classifier", INPUT).ok
    members, messages, absent, present, length, shown = seen[0]
    assert members["module"] == "text-classifier" and "It rained." in members["input"]
    assert members["schema"]["type"] == "object" and members["media"] == [] and length == len(members)
    assert [turn["role"] for turn in messages][0] == "system" and messages[-1]["content"] == members["input"]
    assert absent == 1 and present and shown == "<Call of the module text-classifier>"


def test_streams_pause_close_and_end() -> None:
    asked: list[str] = []

    def provider(call: Any) -> Any:
        for piece in as_generator(call):
            asked.append(piece)
            yield piece

    ours = runtime(provider)
    with ours.stream("summarizer", {"text": "x"}) as chunks:
        assert next(chunks)["streaming"] is True
    assert list(chunks) == [], "closed"
    chunks = ours.stream("text-classifier", INPUT)
    kinds = [next(iter(chunk)) for chunk in chunks]
    assert kinds[-1] == "final" and "chunk" in kinds
    assert list(chunks) == []


def test_threads_share_a_runtime() -> None:
    ours = runtime(as_text)
    envelopes: list[cogn.Envelope] = []
    threads = [
        threading.Thread(target=lambda: envelopes.extend(ours.run("text-classifier", INPUT) for _ in range(20)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(envelopes) == 160 and all(envelope.ok for envelope in envelopes)
    assert len({envelope.meta["trace_id"] for envelope in envelopes}) == 160


# API-002: results are envelopes, not bare payloads.
def test_api_002_the_functions_of_the_guide() -> None:
    ours = runtime()
    result = cogn.run_module("text-classifier", INPUT, runtime=ours)
    assert result["ok"] and result["data"]["label"] == "joy" and result["meta"]["confidence"] == 0.9
    found = cogn.find_module("text-classifier", runtime=ours)
    assert found is not None and found.name == "text-classifier" and found.path is None
    loaded = cogn.load_module("text-classifier", runtime=ours)
    assert loaded.version and loaded.manifest["tier"] == "decision" and loaded.input_schema["required"] == ["text"]
    assert asyncio.run(cogn.run_module_async(loaded, INPUT, runtime=ours))["data"] == DATA
    assert cogn.find_module("no-such-module", runtime=ours) is None
    with pytest.raises(cogn.Failure, match="E4006"):
        cogn.load_module("no-such-module", runtime=ours)


def test_modules_of_a_folder_and_of_a_function(tmp_path: Any) -> None:
    folder = tmp_path / "modules" / "greeter"
    folder.mkdir(parents=True)
    (folder / "module.yaml").write_text("name: greeter\nversion: 1.0.0\nresponsibility: Greets\ntier: exploration\n")
    (folder / "prompt.md").write_text("Greet.\n")
    (folder / "schema.json").write_text('{"input": {"type": "object"}, "data": {"type": "object"}}')
    for modules in (tmp_path / "modules", [tmp_path / "modules"], {"greeter": str(folder)}.get):
        ours = runtime(modules=modules)
        assert ours.run("greeter", {}).ok, modules
        assert cogn.find_module("nowhere", runtime=ours) is None
    assert "greeter" in runtime(modules=tmp_path / "modules").names()

    def broken(name: str) -> str:
        raise LookupError("the shelf is empty")

    error = runtime(modules=broken).run("greeter", {}).error
    assert error and error["code"] == "E4006" and "the shelf is empty" in error["message"]


def test_many_event_loops_leave_nothing_behind() -> None:
    async def once() -> bool:
        return (await ours.arun("text-classifier", INPUT)).ok

    ours = runtime()
    assert asyncio.run(once())
    folder = "/proc/self/fd"
    before = len(os.listdir(folder)) if os.path.isdir(folder) else 0
    assert all(asyncio.run(once()) for _ in range(30))
    gc.collect()
    after = len(os.listdir(folder)) if os.path.isdir(folder) else 0
    assert after <= before + 2, "sockets of loops that are gone"


def test_a_loop_that_watches_no_sockets_is_woken_through_python() -> None:
    class Plain(asyncio.SelectorEventLoop):
        def add_reader(self, *_: Any) -> None:
            raise NotImplementedError

    loop = Plain()
    try:
        ours = runtime()
        assert loop.run_until_complete(ours.arun("text-classifier", INPUT)).ok

        async def several() -> list[cogn.Envelope]:
            return await asyncio.gather(*(ours.arun("text-classifier", INPUT) for _ in range(20)))

        assert all(envelope.ok for envelope in loop.run_until_complete(several()))
    finally:
        loop.close()


def test_paths_in_a_configuration_file_are_seen_from_its_folder(tmp_path: Any) -> None:
    (tmp_path / "mine.yaml").write_text("audit: {path: records.db}\n")
    ours = runtime(config=tmp_path / "mine.yaml")
    assert ours.run("text-classifier", INPUT).ok
    assert (tmp_path / "records.db").exists()
