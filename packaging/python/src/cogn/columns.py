"""`cogn.udf("module")`: a module as a function of columns, for pandas, Polars, Daft, Ray Data and everything that speaks Arrow.

Every row gets an envelope, in the order of the rows. A failure is a value like others, so no row stops a job. An
engine is imported only for its own columns; plain lists need none.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import functools
import inspect
import itertools
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _engines, _native, _runtime
from ._arrow import EnvelopeColumn
from ._awaited import awaited
from ._replay import recorded, replies_for
from ._rows import input_of

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Unpack

    from ._envelope import Envelope
    from ._input_hash import InputHash
    from ._options import RunOptions
    from ._runtime import Runtime

__all__ = ["Udf", "udf"]

# The workers of this process by the name of their `udf`: a function that was sent to another process finds its worker
# again. The newest are kept, so that programs which make functions in a loop do not keep connections for each.
_workers: dict[str, _Worker] = {}
_MOST_WORKERS = 32
# The number of rows in flight. Each part waits for its last row, so longer parts lose less time.
_PART = 8192
_lock = threading.Lock()


def _after_fork() -> None:
    """The thread that held the lock exists only in the parent."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def udf(
    module: str,
    *,
    runtime: Runtime | Mapping[str, Any] | Callable[[], Runtime] | None = None,
    field: str | None = None,
    fixed: Mapping[str, Any] | None = None,
    prepare: Callable[..., Any] | None = None,
    concurrency: int = 32,
    data: str = "typed",
    **options: Unpack[RunOptions],
) -> Udf:
    """A module as a function of columns.

    `runtime`: a runtime for engines in this process, or what to make one of in each process: the arguments of `cogn.Runtime` as a
    dictionary, or a function. The runtime of `cogn.run` without it. `field`: the member of the input for a column of plain
    values; needed only if the module requires several. `fixed`: members that are the same in all rows. `prepare`: makes the
    input of a row; an exception in it is the failure of that row. `concurrency`: how many runs go on at once in a process.
    `data`: `"typed"` by the module's schema, or `"json"` for text. Other options are those of `cogn.run`, such as `timeout`.
    """
    if data not in ("typed", "json"):
        raise ValueError(f"`data` must be `typed` or `json`, found: {data}")
    if "text" in options:
        raise TypeError("`text` is not an option of a column: every row has its own input")
    _native.Gate(concurrency)  # says at once what is wrong with it
    return Udf(_Spec(module, runtime, field, dict(fixed or {}), prepare, concurrency, data, dict(options)))


@dataclasses.dataclass(frozen=True)
class _Spec:
    """The request. Nothing else is sent to other processes."""

    module: str
    runtime: Runtime | Mapping[str, Any] | Callable[[], Runtime] | None
    field: str | None
    fixed: dict[str, Any]
    prepare: Callable[..., Any] | None
    concurrency: int
    data: str
    options: dict[str, Any]
    token: str = dataclasses.field(default_factory=lambda: uuid.uuid4().hex)


class _NoInput(str):
    """The reason why a row has no input."""


class _Worker:
    """The objects that the rows of a column share in one process."""

    def __init__(self, spec: _Spec) -> None:
        self.runtime = _made(spec.runtime)
        self.gate = _native.Gate(spec.concurrency)
        shape = _native.column_shape(self.runtime._native, spec.module)
        self.field: str | None = spec.field or _only_field(shape["input"], spec.fixed)
        self.data_shape = shape["data"] if spec.data == "typed" else "json"


def _made(given: Runtime | Mapping[str, Any] | Callable[[], Runtime] | None) -> Runtime:
    if given is None:
        return _runtime.default()
    if isinstance(given, _runtime.Runtime):
        return given
    return given() if callable(given) else _runtime.Runtime(**given)


def _only_field(members: list[Any], fixed: Mapping[str, Any]) -> str | None:
    """Returns the member for plain values: the only required one, or the only one at all."""
    names = [name for name, _, _ in members if name not in fixed]
    required = [name for name, _, is_required in members if is_required and name not in fixed]
    for candidates in (required, names):
        if len(candidates) == 1:
            return str(candidates[0])
    return None


class Udf:
    """A function of columns; see `udf`. Can be sent to other processes, unless it was given a runtime of this one."""

    column = "env"

    def __init__(self, spec: _Spec) -> None:
        self._spec = spec
        self._column: EnvelopeColumn | None = None
        self.__name__ = self.__qualname__ = f"udf_{spec.module}"

    def __reduce__(self) -> Any:
        if isinstance(self._spec.runtime, _runtime.Runtime):
            raise TypeError("a runtime of this process cannot be used in another one: pass `runtime` as a dictionary or a function")
        return (Udf, (self._spec,))

    def __repr__(self) -> str:
        return f"cogn.udf({self._spec.module!r})"

    def __call__(self, *columns: Any, **named: Any) -> Any:
        """Envelopes for a column, of the kind that its engine has; `named` columns are members of the input.

        A list gives a list of envelopes, a function makes this a decorator: it is `prepare` then.
        """
        if len(columns) == 1 and not named and inspect.isroutine(columns[0]):
            return Udf(dataclasses.replace(self._spec, prepare=columns[0]))
        if len(columns) > 1 or bool(columns) == bool(named):
            raise TypeError("a udf takes one column of inputs, or named columns: `f(column)` or `f(text=column, …)`")
        return _engines.apply(self, columns[0] if columns else None, named)

    @property
    def type(self) -> pa.StructType:
        """The Arrow type of the column."""
        return self._envelopes().type

    @property
    def input_hash(self) -> InputHash:
        """Returns a function of the same columns that computes the hash of each input, as in `cogn batch`. It
        identifies answered rows."""
        from ._input_hash import InputHash

        return InputHash(self)

    def run(self, inputs: Iterable[Any]) -> list[Envelope]:
        """Returns an envelope for each input, in their order. Releases the GIL; Ctrl-C cancels all of them."""
        return [envelope for part in _parts(inputs) for envelope in self._run(part)]

    async def arun(self, inputs: Iterable[Any]) -> list[Envelope]:
        """The same for programs with asyncio. Cancelling the task cancels all runs."""
        worker, module = self._worker(), self._spec.module
        answered: list[Envelope] = []
        for part in _parts(inputs):
            native, rows, faults = self._rows(worker, part, asyncio.get_running_loop())
            start = functools.partial(_start, worker.gate, native, module, rows)
            answered += _with_faults(await awaited(start), faults)
        return answered

    def array(self, values: Iterable[Any]) -> pa.ChunkedArray:
        """The envelopes for values of a column, as an Arrow array."""
        import pyarrow as pa

        column = self._envelopes()
        return pa.chunked_array([column.array(self._run(part)) for part in _parts(values)], type=column.type)

    def batches(self, *columns: str, into: str = "env", **named: str) -> Callable[[pa.Table], pa.Table]:
        """A function from Arrow tables to the same tables with one more column `into`: for `map_batches` of Ray Data
        (`batch_format="pyarrow"`) and other tools that pass Arrow tables. `columns` names the columns."""
        return _engines.TableMapper(self, columns, named, into)

    def _run(self, part: list[Any]) -> list[Envelope]:
        worker = self._worker()
        native, rows, faults = self._rows(worker, part, None)
        return _with_faults(worker.gate.run_many(native, self._spec.module, rows), faults)

    def _worker(self) -> _Worker:
        token = self._spec.token
        with _lock:
            worker = _workers.pop(token, None) or _Worker(self._spec)
            _workers[token] = worker
            if len(_workers) > _MOST_WORKERS:
                del _workers[next(iter(_workers))]
            return worker

    def _envelopes(self) -> EnvelopeColumn:
        if self._column is None:
            self._column = EnvelopeColumn(self._worker().data_shape)
        return self._column

    def _input(self, value: Any, worker: _Worker) -> Any:
        """Returns the input of a row, or the reason why it has none."""
        prepare, fixed = self._spec.prepare, self._spec.fixed
        try:
            given = input_of(prepare(value) if prepare else value, worker.field)
        except Exception as error:
            return _NoInput(f"`prepare` raised {type(error).__name__}: {error}")
        return {**fixed, **given} if fixed and isinstance(given, dict) else given

    def _rows(
        self, worker: _Worker, values: Iterable[Any], loop: asyncio.AbstractEventLoop | None
    ) -> tuple[_native.Runtime, list[tuple[Any, dict[str, Any]]], dict[int, Envelope]]:
        """Returns the worker, the runs to make, and the envelopes of rows whose `prepare` raised."""
        module, native, options = self._spec.module, worker.runtime._native, dict(self._spec.options)
        if worker.runtime._calls_program:
            options["caller"] = (loop, contextvars.copy_context())
        faults: dict[int, Envelope] = {}
        rows: list[tuple[Any, dict[str, Any]]] = []
        for index, value in enumerate(values):
            given = self._input(value, worker)
            if isinstance(given, _NoInput):
                faults[index] = _native.failed_row(given)
            else:
                rows.append((given, options))
        if _runtime._replaying:
            native = recorded(worker.runtime)
            rows = [(given, {**options, "replies": _replies(module, given)}) for given, options in rows]
        return native, rows, faults


def _replies(module: str, given: Any) -> dict[str, tuple[str, str | None]]:
    try:
        return replies_for(module, given)
    except TypeError:  # not JSON; the run of the row reports it
        return {}


def _parts(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Splits long columns into parts, so that the resources of the runs are not needed for all rows at once."""
    rest = iter(values)
    while part := list(itertools.islice(rest, _PART)):
        yield part


def _start(
    gate: _native.Gate, native: _native.Runtime, module: str, rows: list[Any], bridge: _native.Bridge, future: asyncio.Future[Any]
) -> _native.RunHandle:
    return gate.start_many(bridge, future, native, module, rows)


def _with_faults(envelopes: list[Envelope], faults: dict[int, Envelope]) -> list[Envelope]:
    for index in sorted(faults):
        envelopes.insert(index, faults[index])
    return envelopes
