"""The types of OpenAI's Python client as an oracle. The first argument is the command; every line of input and output is JSON."""

import collections.abc
import json
import sys
import typing
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typing_extensions
from openai._models import construct_type
from openai.types import batch_create_params
from openai.types.chat import completion_create_params
from openai.types.responses import Response, ResponseOutputItem, ResponseStreamEvent
from openai.types.responses import response_create_params as create
from openai.types.responses.response import IncompleteDetails
from openai.types.responses.response_error import ResponseError
from openai.types.shared.chat_model import ChatModel
from openai.types.shared.responses_model import ResponsesModel
from pydantic import BaseModel

TEXT = '{"ok": true, "word": "naïve 👍 Größe"}'
REQUESTS = {
    "streaming": create.ResponseCreateParamsStreaming,
    "whole": create.ResponseCreateParamsNonStreaming,
    "chat": completion_create_params.CompletionCreateParamsStreaming,
    "batch": batch_create_params.BatchCreateParams,
}


def plain(hint):
    """Returns a type without the marks around it."""
    while get_origin(hint) in (Annotated, typing_extensions.Required, typing_extensions.NotRequired):
        hint = get_args(hint)[0]
    return hint


def members(kind):
    """Returns the members of a typed dictionary, and those that it requires."""
    hints = typing_extensions.get_type_hints(kind, include_extras=True)
    required = set(kind.__required_keys__)
    required |= {name for name, hint in hints.items() if get_origin(hint) is typing_extensions.Required}
    return hints, required


def faults(value, hint, place):
    """Lists what a value has that its type has not, and the other way round."""
    hint = plain(hint)
    origin = get_origin(hint)
    if hint in (Any, object):
        return []
    if origin is Union or origin is getattr(__import__("types"), "UnionType", None):
        tried = [faults(value, each, place) for each in get_args(hint)]
        # The type that the value names explains best, and a type of the same form better than another.
        other = lambda found: any("/type: " in fault or fault == f"{place}: no str" for fault in found)
        return min(tried, key=lambda found: (other(found), len(found))) if all(tried) else []
    if origin is Literal:
        return [] if value in get_args(hint) else [f"{place}: {value!r} is none of {get_args(hint)}"]
    if origin in (list, collections.abc.Iterable, collections.abc.Sequence):
        if not isinstance(value, list):
            return [f"{place}: no list"]
        return [fault for at, each in enumerate(value) for fault in faults(each, get_args(hint)[0], f"{place}/{at}")]
    if origin is dict:
        return [] if isinstance(value, dict) else [f"{place}: no object"]
    if typing_extensions.is_typeddict(hint):
        if not isinstance(value, dict):
            return [f"{place}: no object"]
        hints, required = members(hint)
        found = [f"{place}: lacks {name}" for name in sorted(required - set(value))]
        found += [f"{place}: unknown {name}" for name in sorted(set(value) - set(hints))]
        known = [(name, each) for name, each in value.items() if name in hints]
        return found + [fault for name, each in known for fault in faults(each, hints[name], f"{place}/{name}")]
    if hint is type(None):
        return [] if value is None else [f"{place}: not null"]
    if hint is float:
        return [] if isinstance(value, (int, float)) and not isinstance(value, bool) else [f"{place}: no number"]
    if hint in (str, bool, int):
        return [] if type(value) is hint else [f"{place}: no {hint.__name__}"]
    raise SystemExit(f"{place}: {hint} is of no kind that this script knows")


def sample(hint, full, depth=0):
    """Returns a value of a type: every member, or only the required ones."""
    hint = plain(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Union:
        if type(None) in args and (not full or depth > 8):
            return None
        return sample(next(each for each in args if each is not type(None)), full, depth + 1)
    if origin is Literal:
        return args[0]
    if origin in (list, collections.abc.Iterable):
        return [sample(args[0], full, depth + 1)] if full and depth < 8 else []
    if origin is dict or hint in (dict, object, Any):
        return {}
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        fields = hint.model_fields.items()
        wanted = [(name, field) for name, field in fields if full or field.is_required()]
        return {field.alias or name: sample(field.annotation, full, depth + 1) for name, field in wanted}
    return {str: "x", int: 1, float: 1.0, bool: False}[hint]


def alternatives(alias):
    """Returns the types of a union that is told apart by a member."""
    return get_args(plain(alias))


def message(text):
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}


def response(output, **more):
    value = {"id": "resp_1", "object": "response", "created_at": 1.0, "model": "m", "output": output,
             "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "completed", **more}
    Response.model_validate(value)
    return value


def expectation(value):
    """Returns what the client reads in a whole response, in the form of the recordings."""
    if value.get("status") in ("queued", "in_progress", "failed"):
        return {"finish": "error"}
    read = construct_type(type_=Response, value=value)
    messages = [item for item in read.output if item.type == "message"]
    parts = [part for item in messages for part in item.content]
    refusal = "".join(part.refusal for part in parts if part.type == "refusal")
    calls = [[item.call_id, item.name, item.arguments] for item in read.output if item.type == "function_call"]
    final = [item for item in messages if getattr(item, "phase", None) != "commentary"]
    text = construct_type(type_=Response, value={**value, "output": [item.to_dict() for item in final]}).output_text
    if not text and not calls:
        text = read.output_text
    finish = "refused" if refusal else "cut_off" if read.status == "incomplete" else "complete"
    found = {"finish": finish, "text": text, "model": read.model}
    if refusal:
        found["refusal"] = refusal
    if calls:
        found["calls"] = calls
    if read.usage:
        count = lambda details, name: getattr(details, name, 0) or 0
        told, written = read.usage.input_tokens_details, read.usage.output_tokens_details
        found["usage"] = [read.usage.input_tokens, read.usage.output_tokens, count(written, "reasoning_tokens"),
                          count(told, "cached_tokens"), count(told, "cache_write_tokens")]
    return found


def requests():
    for line in sys.stdin:
        asked = json.loads(line)
        for fault in faults(asked["body"], REQUESTS[asked["type"]], asked["name"]):
            print(json.dumps(fault))


def expectations():
    final = ("response.completed", "response.incomplete", "response.failed")
    for line in sys.stdin:
        recording = json.loads(line)
        events = recording.get("events", [])
        ends = [event for event in events if event["type"] in final]
        if events and (not ends or any(event["type"] == "error" for event in events)):
            print(json.dumps({"finish": "error"}))
        else:
            print(json.dumps(expectation(ends[-1]["response"] if events else recording["response"])))


def events():
    for kind in alternatives(ResponseStreamEvent):
        for full in (False, True):
            event = sample(kind, full)
            kind.model_validate(event)
            print(json.dumps({"type": event["type"], "event": event, "whole": response([message(TEXT)])}))


def items():
    for kind in alternatives(ResponseOutputItem):
        for full in (False, True):
            item = sample(kind, full)
            kind.model_validate(item)
            print(json.dumps({"type": item["type"], "item": item, "whole": response([item, message(TEXT)])}))


def words():
    codes = get_args(plain(ResponseError.model_fields["code"].annotation))
    reasons = [each for each in get_args(IncompleteDetails.model_fields["reason"].annotation) if each is not type(None)]
    chat = get_args(ChatModel)
    alone = [name for each in get_args(ResponsesModel) for name in get_args(each) if get_origin(each) is Literal]
    print(json.dumps({"codes": codes, "reasons": [name for each in reasons for name in get_args(each)],
                      "chat": chat, "alone": [name for name in alone if name not in chat]}))


{"requests": requests, "expectations": expectations, "events": events, "items": items, "words": words}[sys.argv[1]]()
