"""Modules as functions: pydantic classes that are checked when a module is loaded, and dictionaries without them."""

from __future__ import annotations

import asyncio
import enum
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal, Optional

import pydantic
import pytest

import cogn
from answers import ANSWER, DATA, as_generator, runtime


class TextIn(pydantic.BaseModel):
    text: str
    labels: Optional[list[str]] = None


class Sentiment(enum.Enum):
    POSITIVE = "positive"
    NEGATIVE = "negative"
    NEUTRAL = "neutral"


class Label(pydantic.BaseModel):
    rationale: str
    sentiment: Sentiment
    label: str


def classifier() -> cogn.Module[TextIn, Label]:
    return cogn.module("text-classifier", input=TextIn, output=Label, runtime=runtime(as_generator))


def test_objects_go_in_and_come_out() -> None:
    module = classifier()
    for label in (module(text="x"), module(TextIn(text="x")), module({"text": "x"}), asyncio.run(module.acall(text="x"))):
        assert isinstance(label, Label) and label.sentiment is Sentiment.POSITIVE
    assert module.run(text="x").data == DATA and asyncio.run(module.arun(TextIn(text="x"))).data == DATA
    with pytest.raises(pydantic.ValidationError):
        module(text=5)
    with pytest.raises(TypeError, match="either whole or field by field"):
        module(TextIn(text="x"), text="y")


def test_partials_grow_into_the_answer() -> None:
    async def collect() -> list[Any]:
        return [partial async for partial in classifier().stream(text="x")]

    partials = asyncio.run(collect())
    assert partials[0].label is None and DATA["rationale"].startswith(partials[0].rationale)
    assert type(partials[-1]) is Label and partials[-1].label == "joy"
    assert [each.rationale for each in classifier().partials(text="x")] == [each.rationale for each in partials]


def test_a_failed_run_is_an_exception_with_all_that_is_known() -> None:
    def refuses(call: Any) -> dict[str, Any]:
        return {"ok": False, "meta": ANSWER["meta"], "error": {"code": "E2006", "message": "no"}, "partial_data": {"label": "joy"}}

    module = cogn.module("text-classifier", output=Label, runtime=runtime(refuses))
    with pytest.raises(cogn.Failure) as caught:
        module(text="x")
    assert caught.value.code == "E2006" and caught.value.partial_data == {"label": "joy"}
    with pytest.raises(cogn.Failure):
        list(module.partials(text="x"))


def test_an_answer_that_only_the_class_refuses_is_a_failure_that_keeps_it() -> None:
    class Shouting(Label):
        @pydantic.field_validator("label")
        @classmethod
        def loud(cls, value: str) -> str:
            if not value.isupper():
                raise ValueError("not loud enough")
            return value

    with pytest.raises(cogn.Failure) as caught:
        cogn.module("text-classifier", output=Shouting, runtime=runtime())(text="x")
    assert caught.value.code == "E3001" and caught.value.partial_data == DATA
    assert "not loud enough" in caught.value.message and isinstance(caught.value.__cause__, pydantic.ValidationError)


class MissingInput(pydantic.BaseModel):
    txt: str


class NumberInput(pydantic.BaseModel):
    text: int


class ListInput(pydantic.BaseModel):
    text: str
    labels: list[int]


class NumberOut(pydantic.BaseModel):
    rationale: int


class FewerWords(pydantic.BaseModel):
    sentiment: Literal["positive", "negative"]


class Unknown(pydantic.BaseModel):
    mood: str


class Closed(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    rationale: str


MISFITS: list[tuple[dict[str, Any], list[str]]] = [
    ({"input": MissingInput}, ["`txt`: the module has no such input", "`text`: the module needs it"]),
    ({"input": NumberInput}, ["`text`: the class says integer, the module string"]),
    ({"input": ListInput}, ["`labels[]`: the class says integer, the module string"]),
    ({"output": NumberOut}, ["`rationale`: the class says integer, the module string"]),
    ({"output": FewerWords}, ["`sentiment`: the class does not know 'neutral'"]),
    ({"output": Unknown}, ["`mood`: the module never gives it"]),
    ({"output": Closed}, ["`label`: the module may give it, and the class forbids it"]),
    ({"output": dict}, ["`output` must be a class of pydantic 2"]),
]


@pytest.mark.parametrize(("classes", "messages"), MISFITS, ids=range(len(MISFITS)))
def test_a_class_that_cannot_work_is_found_when_the_module_is_loaded(classes: dict[str, Any], messages: list[str]) -> None:
    with pytest.raises(TypeError) as caught:
        cogn.module("text-classifier", runtime=runtime(), **classes)
    for message in messages:
        assert message in str(caught.value)


def test_extensible_enums_optional_members_and_nested_objects(tmp_path: Path) -> None:
    folder = tmp_path / "ticket"
    folder.mkdir()
    (folder / "module.yaml").write_text("name: ticket\nversion: 1.0.0\nresponsibility: Sorts tickets\ntier: exploration\n")
    (folder / "prompt.md").write_text("Sort.\n")
    (folder / "schema.json").write_text(
        """{"input": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
        "data": {"type": "object", "required": ["rationale", "items"], "properties": {
          "rationale": {"type": "string"}, "note": {"type": "string"},
          "items": {"type": "array", "items": {"$ref": "#/$defs/item"}}}},
        "$defs": {"item": {"type": "object", "required": ["n"], "properties": {
          "n": {"type": "integer"}, "kind": {"oneOf": [{"type": "string", "enum": ["a", "b"]},
            {"type": "object", "required": ["custom", "reason"], "properties": {
              "custom": {"type": "string"}, "reason": {"type": "string"}}}]}}}}}"""
    )

    class Custom(pydantic.BaseModel):
        custom: str
        reason: str

    class Item(pydantic.BaseModel):
        n: float
        kind: Literal["a", "b"] | Custom | None = None

    class Ticket(pydantic.BaseModel):
        rationale: str
        note: str | None = None
        items: list[Item]

    class Strict(pydantic.BaseModel):
        note: str
        items: list[dict[str, Any]]

    ours = runtime(modules=tmp_path)
    assert cogn.module("ticket", output=Ticket, runtime=ours).name == "ticket"
    with pytest.raises(TypeError, match="`note`: the module may leave it out, and the class needs it"):
        cogn.module("ticket", output=Strict, runtime=ours)

    class OnlyKnown(pydantic.BaseModel):
        items: list[dict[str, str]]

    class Flat(pydantic.BaseModel):
        items: str

    with pytest.raises(TypeError, match="`items`: the class says string, the module array"):
        cogn.module("ticket", output=Flat, runtime=ours)


def test_without_pydantic_it_is_a_dictionary_in_and_out() -> None:
    text = """
import sys
sys.modules["pydantic"] = None
import cogn
answer = '{"ok": true, "meta": {"confidence": 1, "risk": "low", "explain": "x"}, "data": {"rationale": "r", "sentiment": "neutral", "label": "l"}}'
module = cogn.module("text-classifier", runtime=cogn.Runtime(provider=lambda call: answer, env=False))
assert module(text="x")["label"] == "l" and module({"text": "x"})["label"] == "l"
assert list(module.partials(text="x"))[-1]["label"] == "l"
try:
    cogn.module("text-classifier", input=dict, runtime=module.runtime)
except TypeError as error:
    assert "pydantic" in str(error)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
