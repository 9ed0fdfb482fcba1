"""`Reply`: the metadata that a provider adds to its text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Reply:
    """The whole answer of a provider, with its known metadata.

    `usage` is tokens read and tokens written; `finish` is `complete`, `cut_off` (a limit ended the text) or `refused`.
    """

    __slots__ = ("finish", "model", "text", "usage")

    def __init__(
        self,
        text: str | Mapping[str, Any],
        *,
        model: str | None = None,
        usage: tuple[int, int] | None = None,
        finish: str | None = None,
    ) -> None:
        if finish not in (None, "complete", "cut_off", "refused"):
            raise ValueError(f"`finish` must be `complete`, `cut_off` or `refused`, found: {finish}")
        self.text = text
        self.model = model
        self.usage = usage
        self.finish = finish
