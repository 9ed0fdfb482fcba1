"""Converts the columns of each engine to rows, and envelopes back to columns. The type of the column identifies the engine;
no engine is imported here before that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class RowFunction(Protocol):
    """Computes a value for each row: envelopes, or hashes of inputs."""

    __name__: str
    column: str

    @property
    def type(self) -> Any: ...
    def run(self, inputs: Iterable[Any]) -> Any: ...
    def array(self, values: Iterable[Any]) -> pa.ChunkedArray: ...


def apply(udf: RowFunction, column: Any, named: Mapping[str, Any]) -> Any:
    """Returns a value for each row of a column, or of named columns of one engine."""
    engines = {engine for value in ([column] if not named else named.values()) if (engine := _engine(value))}
    if len(engines) > 1:
        raise TypeError(f"the columns are of several engines: {', '.join(sorted(engines))}")
    if not engines:
        return _plain(udf, column, named)
    return _ENGINES[engines.pop()](udf, column, named)


def _engine(value: Any) -> str | None:
    engine = type(value).__module__.partition(".")[0]
    return engine if engine in _ENGINES else None


def _rows(columns: Mapping[str, Iterable[Any]]) -> Iterable[dict[str, Any]]:
    """Rows of named columns of the same length."""
    names = list(columns)
    return (dict(zip(names, values)) for values in zip(*columns.values(), strict=True))


def _plain(udf: RowFunction, column: Any, named: Mapping[str, Any]) -> Any:
    if named:
        return udf.run(_rows(named))
    if isinstance(column, (str, bytes, Mapping)) or not isinstance(column, Iterable):
        raise TypeError(f"a udf takes columns and lists, but this is of the type `{type(column).__name__}`: use `cogn.run` for one input")
    return udf.run(column)


def _pandas(udf: RowFunction, column: Any, named: Mapping[str, Any]) -> Any:
    import pandas as pd

    if named:
        index = next(value.index for value in named.values() if isinstance(value, (pd.Series, pd.DataFrame)))
        values: Iterable[Any] = _rows({name: list(value) for name, value in named.items()})
    elif isinstance(column, pd.DataFrame):
        index, values = column.index, _rows({str(name): column[name].tolist() for name in column.columns})
    else:
        index, values = column.index, column.tolist()
    return pd.Series(pd.array(udf.array(values), dtype=pd.ArrowDtype(udf.type)), index=index, name=udf.column)


def _polars(udf: RowFunction, column: Any, named: Mapping[str, Any]) -> Any:
    import polars as pl

    def envelopes(series: pl.Series) -> pl.Series:
        return pl.Series(udf.column, pl.from_arrow(udf.array(series.to_list())))

    if isinstance(column, pl.LazyFrame):
        raise TypeError('a lazy frame of Polars gets a column: `frame.with_columns(env=f(pl.col("text")))`')
    if isinstance(column, pl.DataFrame):
        return envelopes(column.to_struct("input"))
    if isinstance(column, pl.Series):
        return envelopes(column)
    if named and all(isinstance(value, pl.Series) for value in named.values()):
        return envelopes(pl.DataFrame(dict(named)).to_struct("input"))
    if named:
        column = pl.struct(**named)
    # Row by row, so that streaming engines may pass parts of the column.
    return column.map_batches(envelopes, return_dtype=_polars_type(udf), is_elementwise=True)


def _polars_type(udf: RowFunction) -> Any:
    import polars as pl
    import pyarrow as pa

    return pl.Series(pl.from_arrow(pa.array([], type=udf.type))).dtype


def _daft(udf: RowFunction, column: Any, named: Mapping[str, Any]) -> Any:
    import daft

    if isinstance(column, daft.DataFrame):
        raise TypeError('a data frame of Daft gets a column: `frame.with_column("env", f(daft.col("text")))`')
    if isinstance(column, daft.Series):
        return daft.Series.from_arrow(udf.array(column.to_pylist()), name=udf.column)

    def envelopes(*columns: Any, **more: Any) -> Any:
        values = columns[0].to_pylist() if columns else _rows({name: each.to_pylist() for name, each in more.items()})
        return daft.Series.from_arrow(udf.array(values), name=udf.column)

    envelopes.__name__ = udf.__name__
    # Waiting for models needs no processor, so a separate process would only cost memory.
    function = daft.func.batch(return_dtype=daft.DataType.from_arrow_type(udf.type), use_process=False)(envelopes)
    return function(**named) if named else function(column)


def _arrow(udf: RowFunction, column: Any, named: Mapping[str, Any]) -> Any:
    values = _rows({name: _pylist(value) for name, value in named.items()}) if named else column.to_pylist()
    return udf.array(values)


def _pylist(value: Any) -> list[Any]:
    values: list[Any] = value.to_pylist() if hasattr(value, "to_pylist") else list(value)
    return values


def _ray(udf: RowFunction, column: Any, named: Mapping[str, Any]) -> Any:
    raise TypeError('a data set of Ray is mapped: `data.map_batches(f.batches("text"), batch_format="pyarrow")`')


class TableMapper:
    """Adds a column of envelopes to a table; see `Udf.batches`. Can be sent to other processes."""

    def __init__(self, udf: RowFunction, columns: tuple[str, ...], named: Mapping[str, str], into: str) -> None:
        if len(columns) > 1 or (columns and named):
            raise TypeError("name one column of inputs, or the columns of its members, or none for all columns")
        self.udf, self.columns, self.named, self.into = udf, columns, dict(named), into
        self.__name__ = udf.__name__

    def __call__(self, table: pa.Table) -> pa.Table:
        if self.columns:
            values: Iterable[Any] = table.column(self.columns[0]).to_pylist()
        elif self.named:
            values = _rows({name: table.column(column).to_pylist() for name, column in self.named.items()})
        else:
            values = table.to_pylist()
        return table.append_column(self.into, self.udf.array(values))


_ENGINES: dict[str, Callable[[RowFunction, Any, Mapping[str, Any]], Any]] = {
    "pandas": _pandas,
    "polars": _polars,
    "daft": _daft,
    "pyarrow": _arrow,
    "ray": _ray,
}
