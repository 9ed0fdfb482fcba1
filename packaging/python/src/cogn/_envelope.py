"""The answer of a run: `Envelope`, a dictionary, and `Failure`, the exception of an unwrapped failure."""

from __future__ import annotations

from typing import Any

from . import _native


class Envelope(dict[str, Any]):
    """The answer of a run: `{ok, meta, data}`, or `{ok: False, meta, error, partial_data?}`."""

    __slots__ = ("_written",)

    _written: _native.Written | str

    @property
    def ok(self) -> bool:
        """True if the run succeeded."""
        return bool(self.get("ok"))

    @property
    def meta(self) -> dict[str, Any]:
        """`confidence`, `risk`, `explain` and other members for routing."""
        meta: dict[str, Any] = self.get("meta", {})
        return meta

    @property
    def data(self) -> dict[str, Any] | None:
        """The answer of a success, else `None`."""
        return self.get("data")

    @property
    def error(self) -> dict[str, Any] | None:
        """The error of a failure, else `None`."""
        return self.get("error")

    @property
    def partial_data(self) -> dict[str, Any] | None:
        """The partial answer of a failure, else `None`."""
        return self.get("partial_data")

    def json(self) -> str:
        """The text of the runtime, byte for byte, regardless of later changes to the dictionary."""
        written: _native.Written | str | None = getattr(self, "_written", None)
        if written is None:
            import json

            return json.dumps(self, ensure_ascii=False, separators=(",", ":"))
        if isinstance(written, str):
            return written
        return written.json()

    def unwrap(self) -> dict[str, Any]:
        """Returns the data of a success. Raises `Failure` for a failed run."""
        data = self.data
        if not self.ok or data is None:
            raise Failure(self)
        return data

    def __reduce__(self) -> Any:
        return _restored, (dict(self), self.json())

    def __copy__(self) -> "Envelope":
        return _restored(dict(self), self.json())

    def copy(self) -> "Envelope":
        """A shallow copy, which is an envelope as well."""
        return self.__copy__()

    def __repr__(self) -> str:
        return f"Envelope({dict.__repr__(self)})"


def _restored(members: dict[str, Any], text: str) -> Envelope:
    envelope = Envelope(members)
    envelope._written = text
    return envelope


class Failure(Exception):
    """A failed run, as an exception. `str()` has the code, the message and the hint."""

    def __init__(self, envelope: Envelope) -> None:
        self.envelope = envelope
        error = envelope.error or {}
        self.code: str = str(error.get("code", ""))
        self.message: str = str(error.get("message", ""))
        self.suggestion: str | None = error.get("suggestion")
        self.recoverable: bool = bool(error.get("recoverable", False))
        self.details: dict[str, Any] = error.get("details") or {}
        self.partial_data: dict[str, Any] | None = envelope.partial_data
        hint = f" (hint: {self.suggestion})" if self.suggestion else ""
        super().__init__(f"{self.code}: {self.message}{hint}")

    def __reduce__(self) -> Any:
        return Failure, (self.envelope,)
