"""Converts a row of a data frame to the input of a run: plain JSON values, without members for missing values.

Raises nothing: a value without a form in JSON is passed on unchanged, and the run of its row fails.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Mapping
from typing import Any

_TEXT_FORM = (datetime.date, datetime.time)


def plain(value: Any) -> Any:
    """Converts a value of a column to JSON. A missing value (`None`, NaN, `NaT`, `NA`) becomes `None`, and a missing
    member is omitted."""
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
    """Converts scalars and arrays of numpy and of engines, without importing them."""
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
    """Returns the input for a value: a mapping is the input itself, anything else becomes its member `field`."""
    value = plain(value)
    if isinstance(value, dict) or field is None:
        return value
    return {} if value is None else {field: value}
