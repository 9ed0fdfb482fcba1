"""`udf.input_hash`: the hash of each row's input, as a column. A job uses it to find rows that it has already
answered.

It is the `input_hash` of receipts and of `cogn batch`: SHA-256 of the canonical JSON. Calls no model. Rows without a
valid input have a hash, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import _engines, _native

if TYPE_CHECKING:
    import pyarrow as pa

    from .columns import Udf

__all__ = ["InputHash"]


class InputHash:
    """A function of the same columns as its `Udf`, which returns hashes instead of envelopes."""

    column = "input_hash"

    def __init__(self, udf: Udf) -> None:
        self._udf = udf
        self.__name__ = self.__qualname__ = f"hash_{udf.__name__}"

    def __reduce__(self) -> Any:
        return (InputHash, (self._udf,))

    def __repr__(self) -> str:
        return f"{self._udf!r}.input_hash"

    def __call__(self, *columns: Any, **named: Any) -> Any:
        """Returns the hashes for a column, as a column of its engine; for a list, a list of texts."""
        if len(columns) > 1 or bool(columns) == bool(named):
            raise TypeError("a hash is that of one column of inputs, or of named columns: `f.input_hash(column)` or `f.input_hash(text=column, …)`")
        return _engines.apply(self, columns[0] if columns else None, named)

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the column."""
        import pyarrow as pa

        return pa.string()

    def run(self, inputs: Iterable[Any]) -> list[str]:
        """Returns the hash of each input, in their order."""
        worker = self._udf._worker()
        return _native.input_hashes([self._udf._input(value, worker) for value in inputs])

    def array(self, values: Iterable[Any]) -> pa.ChunkedArray:
        """The hashes for values of a column, as an Arrow array."""
        import pyarrow as pa

        return pa.chunked_array([self.run(values)], type=self.type)

    def batches(self, *columns: str, into: str = "input_hash", **named: str) -> Callable[[pa.Table], pa.Table]:
        """A function from Arrow tables to the same tables with one more column `into`, as `Udf.batches`."""
        return _engines.TableMapper(self, columns, named, into)
