"""Converts a row of a data frame to the input of a run: plain JSON values, without members for missing values.

Refuses nothing itself: a value that has no form in JSON is handed on as it is, and the run of its row fails.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Mapping
from typing import Any

_TEXT_FORM = (datetime.date, datetime.time)


def plain(value: Any) -> Any:
    """A value of a column as JSON. What is missing (`None`, NaN, `NaT`, `NA`) is `None`, and a member that is missing is left out."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return None if value != value else value
    if isinstance(value, Mapping):
        members = ((name, plain(member)) for name, member in value.items())
        return {name: member for name, member in members if member is not None}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, _TEXT_FORM):  # a datetime is a date
        # `NaT` of pandas is a datetime that does not equal itself.
        return None if value != value else value.isoformat()
    if isinstance(value, decimal.Decimal):
        return _number(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    return _foreign(value)


def _number(value: decimal.Decimal) -> Any:
    if not value.is_finite():
        return None
    return int(value) if value == value.to_integral_value() else float(value)


def _foreign(value: Any) -> Any:
    """Scalars and arrays of numpy and of engines, without importing any of them."""
    kind = type(value)
    if kind.__module__.startswith("pandas.") and kind.__name__ == "NAType":
        return None
    for method in ("as_py", "to_pylist", "tolist", "item"):
        convert = getattr(value, method, None)
        if callable(convert) and kind.__module__.split(".")[0] in ("numpy", "pyarrow", "pandas", "polars", "daft"):
            converted = convert()
            return value if type(converted) is kind else plain(converted)
    return value


def input_of(value: Any, field: str | None) -> Any:
    """The input that a value stands for: a mapping is the input itself, anything else is its member `field`."""
    value = plain(value)
    if isinstance(value, dict) or field is None:
        return value
    return {} if value is None else {field: value}
