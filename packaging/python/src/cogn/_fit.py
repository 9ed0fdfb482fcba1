"""Compares a pydantic class with a section of a module's contract when the module is loaded, so that an unsuitable
class is found before the first run. Reports only certain mismatches: an unknown keyword never makes a class wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_Schema = Mapping[str, Any]

_ALL_TYPES = frozenset(["string", "number", "integer", "boolean", "null", "object", "array"])


class _Side(NamedTuple):
    """One of the two schemas, with its definitions."""

    name: str
    defs: _Schema

    def follow(self, schema: Any) -> _Schema:
        for _ in range(64):
            if not isinstance(schema, Mapping):
                return {}
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return schema
            schema = self.defs.get(reference.rsplit("/", 1)[-1], {})
        return {}


def mismatches(model: _Schema, contract: _Schema, defs: _Schema, *, is_input: bool) -> list[str]:
    """Returns the reasons why a class (its JSON schema) does not match a section of a contract; an empty list if it
    does.

    Values of an input go from the class to the contract, data from the contract to the class.
    """
    here = _Side("class", model.get("$defs", {}))
    there = _Side("module", defs)
    return list(_object(here, model, there, contract, "", is_input, 0))


def _object(
    here: _Side, model: _Schema, there: _Side, contract: _Schema, path: str, is_input: bool, depth: int
) -> Iterator[str]:
    known, fields = contract.get("properties", {}), model.get("properties", {})
    if not known and not fields:
        return
    is_closed = contract.get("additionalProperties") is False
    required, needed = set(contract.get("required", ())), set(model.get("required", ()))
    for name in fields:
        if name in known:
            yield from _value(here, fields[name], there, known[name], f"{path}{name}", is_input, depth)
        elif is_input and (is_closed or known):
            yield f"`{path}{name}`: the module has no such input"
        elif not is_input and is_closed and name in needed:
            yield f"`{path}{name}`: the module never gives it"
    if is_input:
        for name in sorted(required - set(fields)):
            yield f"`{path}{name}`: the module needs it, and the class has no such field"
    else:
        for name in sorted((needed & set(known)) - required):
            yield f"`{path}{name}`: the module may leave it out, and the class needs it"
        if model.get("additionalProperties") is False:
            for name in sorted(set(known) - set(fields)):
                yield f"`{path}{name}`: the module may give it, and the class forbids it"


def _value(
    here: _Side, model: Any, there: _Side, contract: Any, path: str, is_input: bool, depth: int
) -> Iterator[str]:
    model, contract = here.follow(model), there.follow(contract)
    if depth > 32:
        return
    given, taken = (_types(here, model), _types(there, contract))
    if is_input:
        # A field that is `None` is not sent.
        given = given - {"null"} or given
    else:
        given, taken = taken, given
    extra = {kind for kind in given if not _takes(taken, kind)}
    if extra == given if is_input else extra:
        yield f"`{path}`: the class says {_words(_types(here, model))}, the module {_words(_types(there, contract))}"
        return
    ours, theirs = _listed(here, model), _listed(there, contract)
    if ours is not None and theirs is not None:
        sent, accepted = (ours, theirs) if is_input else (theirs, ours)
        foreign = [value for value in sent if value is not None and value not in accepted]
        if foreign:
            who = "module" if is_input else "class"
            yield f"`{path}`: the {who} does not know {', '.join(repr(value) for value in foreign)}"
        return
    yield from _inner(here, model, there, contract, path, is_input, depth)


def _inner(
    here: _Side, model: _Schema, there: _Side, contract: _Schema, path: str, is_input: bool, depth: int
) -> Iterator[str]:
    objects = _only(here, model, "object"), _only(there, contract, "object")
    if objects[0] is not None and objects[1] is not None:
        yield from _object(here, objects[0], there, objects[1], f"{path}.", is_input, depth + 1)
    lists = _only(here, model, "array"), _only(there, contract, "array")
    if lists[0] is not None and lists[1] is not None and "items" in lists[0] and "items" in lists[1]:
        yield from _value(here, lists[0]["items"], there, lists[1]["items"], f"{path}[]", is_input, depth + 1)


def _branches(side: _Side, schema: _Schema) -> list[_Schema]:
    """The alternatives of a schema."""
    for word in ("anyOf", "oneOf"):
        if isinstance(schema.get(word), list):
            return [side.follow(each) for each in schema[word]]
    if "allOf" in schema and len(schema["allOf"]) == 1:
        return _branches(side, side.follow(schema["allOf"][0]))
    return [schema]


def _types(side: _Side, schema: _Schema) -> frozenset[str]:
    kinds: set[str] = set()
    for branch in _branches(side, schema):
        kind = branch.get("type")
        if isinstance(kind, str):
            kinds.add(kind)
        elif isinstance(kind, list):
            kinds.update(kind)
        elif "const" in branch:
            kinds.add(_type_of(branch["const"]))
        elif isinstance(branch.get("enum"), list):
            kinds.update(_type_of(value) for value in branch["enum"])
        elif "properties" in branch:
            kinds.add("object")
        elif branch is not schema and len(_branches(side, branch)) > 1:
            kinds.update(_types(side, branch))
        else:
            return _ALL_TYPES
    return frozenset(kinds)


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    for kind, word in ((str, "string"), (int, "integer"), (float, "number"), (list, "array")):
        if isinstance(value, kind):
            return word
    return "object"


def _takes(taken: frozenset[str], kind: str) -> bool:
    return kind in taken or (kind == "integer" and "number" in taken)


def _words(kinds: frozenset[str]) -> str:
    return "anything" if kinds == _ALL_TYPES else " or ".join(sorted(kinds))


def _listed(side: _Side, schema: _Schema) -> list[Any] | None:
    """The values that a schema lists, if it allows no others."""
    values: list[Any] = []
    for branch in _branches(side, schema):
        if "const" in branch:
            values.append(branch["const"])
        elif isinstance(branch.get("enum"), list):
            values.extend(branch["enum"])
        elif branch.get("type") == "null":
            values.append(None)
        else:
            return None
    return values


def _only(side: _Side, schema: _Schema, kind: str) -> _Schema | None:
    """The only branch of a type, apart from `null`."""
    found = [branch for branch in _branches(side, schema) if branch.get("type") != "null"]
    if len(found) == 1 and found[0].get("type") in (kind, None):
        return found[0]
    return None
