"""Envelopes as an Arrow column: one struct per row, in which failures are values like others. Needs pyarrow, when it is used.

The column has typed members for filters and joins. Its member `json` has the whole envelope as the runtime wrote it.
A value that does not fit its type (an answer that no schema checked) is null; it never stops a job.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from ._envelope import Envelope

Fit = Callable[[Any], Any]

_META: list[Any] = [["confidence", "number"], ["risk", "word"], ["explain", "text"], ["model", "text"], ["latency_ms", "number"]]
_ERROR: list[Any] = [["code", "text"], ["message", "text"], ["suggestion", "text"], ["recoverable", "boolean"], ["details", "json"]]
_USAGE: list[Any] = [["input_tokens", "integer"], ["output_tokens", "integer"], ["total_tokens", "integer"]]
_LARGEST = 2**63


class EnvelopeColumn:
    """The type of a column, and the conversion of envelopes to it. `data` is a shape of the native module, or
    `"json"`."""

    def __init__(self, data: Any) -> None:
        shape: list[Any] = [
            ["ok", "boolean"],
            ["meta", {"struct": _META}],
            ["data", data],
            ["error", {"struct": _ERROR}],
            ["usage", {"struct": _USAGE}],
            ["json", "text"],
        ]
        self.type: pa.StructType = _arrow_type({"struct": shape})
        self._members = [(name, _fit(member)) for name, member in shape[:4]]
        self._usage = _fit({"struct": _USAGE})

    def array(self, envelopes: Iterable[Envelope]) -> pa.StructArray:
        """A row for each envelope."""
        import pyarrow as pa

        return pa.array([self._row(envelope) for envelope in envelopes], type=self.type)

    def _row(self, envelope: Envelope) -> dict[str, Any]:
        row = {name: fit(envelope.get(name)) for name, fit in self._members}
        row["usage"] = self._usage((envelope.get("meta") or {}).get("usage"))
        row["json"] = envelope.json()
        return row


def _arrow_type(shape: Any) -> Any:
    import pyarrow as pa

    plain = {"text": pa.string(), "word": pa.string(), "json": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
    if isinstance(shape, str):
        return plain[shape]
    if "list" in shape:
        return pa.list_(_arrow_type(shape["list"]))
    # The type marks JSON text, for readers of the schema.
    return pa.struct(
        [pa.field(name, _arrow_type(member), metadata={"cogn": "json"} if member == "json" else None) for name, member in shape["struct"]]
    )


def _fit(shape: Any) -> Fit:
    if isinstance(shape, str):
        return _PLAIN[shape]
    if "list" in shape:
        item = _fit(shape["list"])
        return lambda value: [item(each) for each in value] if isinstance(value, list) else None
    members = [(name, _fit(member)) for name, member in shape["struct"]]

    def struct(value: Any) -> Any:
        return {name: fit(value.get(name)) for name, fit in members} if isinstance(value, dict) else None

    return struct


def _text(value: Any) -> Any:
    return value if isinstance(value, str) else None


def _word(value: Any) -> Any:
    # `{"custom": "…", "reason": "…"}` is a value outside of the list.
    return _text(value.get("custom") if isinstance(value, dict) else value)


def _integer(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and -_LARGEST <= value < _LARGEST else None


def _float(value: Any) -> Any:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _boolean(value: Any) -> Any:
    return value if isinstance(value, bool) else None


def _json(value: Any) -> Any:
    return None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_PLAIN: dict[str, Fit] = {"text": _text, "word": _word, "json": _json, "integer": _integer, "number": _float, "boolean": _boolean}
