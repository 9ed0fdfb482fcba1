"""`Reply`: what a provider says besides its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional, Tuple, Union


@dataclass(frozen=True)
class Reply:
    """The whole answer of a provider, with what is known of it.

    `usage` is tokens read and tokens written; `finish` is `complete`, `cut_off` (a limit ended the text) or `refused`.
    """

    text: Union[str, Mapping[str, Any]]
    model: Optional[str] = None
    usage: Optional[Tuple[int, int]] = None
    finish: Optional[str] = None
