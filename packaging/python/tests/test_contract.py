"""The failures that a module declares, the capabilities of a runtime, and context for a run. (MAN-015, CAP-001, CTX-060)"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import cogn
from answers import ANSWER, runtime
from cognitive import CognitiveRuntime

REFUSAL = {
    "ok": False,
    "meta": {"confidence": 0.2, "risk": "high", "explain": "x"},
    "error": {"code": "E5001", "message": "no"},
}


def module(folder: Path, contract: str) -> str:
    place = folder / contract
    place.mkdir()
    (place / "module.yaml").write_text(f"name: sample\nversion: 1.0.0\ntier: decision\nfailure: {{contract: {contract}}}\n")
    (place / "prompt.md").write_text("Answer.")
    (place / "schema.json").write_text('{"input": {}, "data": {"type": "object", "required": ["rationale"]}}')
    return str(place)


# D-26
def test_a_module_that_throws_raises_with_its_envelope(tmp_path: Path) -> None:
    ours = runtime(lambda call: REFUSAL)
    throws, answers = module(tmp_path, "throw"), module(tmp_path, "error_union")
    assert ours.run(answers, {})["error"]["code"] == "E5001"
    with pytest.raises(cogn.Failure) as caught:
        ours.run(throws, {})
    assert (caught.value.code, caught.value.envelope["meta"]["confidence"]) == ("E5001", 0.2)
    with pytest.raises(cogn.Failure, match="E5001: no"):
        asyncio.run(ours.arun(throws, {}))
    with pytest.raises(cogn.Failure, match="E5001: no"):
        CognitiveRuntime(provider=lambda call: REFUSAL, env=False).execute(throws, {})
    assert runtime(lambda call: ANSWER).run(throws, {}).ok, "a success is an envelope"


def test_a_runtime_declares_what_it_can_do() -> None:
    for declared in (runtime().capabilities(), CognitiveRuntime(env=False, provider=lambda call: ANSWER).capabilities()):
        assert declared["runtime"] == "cogn" and "2.5" in declared["spec_versions"]
        assert declared["capabilities"]["streaming"] is True and "sse" in declared["capabilities"]["supported_transports"]


def test_context_is_built_from_raw_data() -> None:
    turns = [{"role": "user", "content": str(number)} for number in range(12)]
    built = cogn.ContextBuilder().conversation(turns).build()["conversation_history"]
    assert [turn["content"] for turn in built] == [str(number) for number in range(2, 12)]
    summed = cogn.ContextBuilder(max_turns=3).conversation(turns, summarise=lambda older: f"{len(older)} turns").build()
    assert [turn["content"] for turn in summed["conversation_history"]] == ["10 turns", "10", "11"]
    envelope, failed = cogn.Envelope(ANSWER), cogn.Envelope(REFUSAL)
    builder = cogn.ContextBuilder().user_profile({"level": "expert"}).session_state({"n": 1}).previous_result("m", envelope)
    given = builder.previous_result("m", failed).add("own", [1]).into_input({"text": "t"})
    assert given["text"] == "t" and list(given["_context"]) == ["user_profile", "session_state", "previous_result", "own"]
    assert given["_context"]["previous_result"] == {"module": "m", "meta": ANSWER["meta"], "data": ANSWER["data"]}


def test_a_run_receives_the_context_that_was_built(tmp_path: Path) -> None:
    seen: list[str] = []

    def provider(call: Any) -> dict[str, Any]:
        seen.append(call.input)
        return ANSWER

    place = Path(module(tmp_path, "error_union"))
    text = (place / "module.yaml").read_text() + "context: {accepts: [{type: session_state}]}\n"
    (place / "module.yaml").write_text(text)
    runtime(provider).run(str(place), cogn.ContextBuilder().session_state({"n": 7}).into_input({}))
    assert json.dumps({"session_state": {"n": 7}}, separators=(",", ":")) in seen[0]
