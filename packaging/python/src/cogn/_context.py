"""`ContextBuilder`: the `_context` of an input, from the raw data of an application."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._envelope import Envelope

Turn = Mapping[str, Any]


class ContextBuilder:
    """Builds context from raw data: `ContextBuilder().conversation(turns).into_input({"text": "…"})`.

    A turn has `role` (`user`, `assistant` or `system`), `content`, and optionally `timestamp`. A later value of the same type
    replaces the earlier one.
    """

    def __init__(self, *, max_turns: int = 10) -> None:
        self._max_turns = max(1, max_turns)
        self._context: dict[str, Any] = {}

    def conversation(self, turns: Sequence[Turn], *, summarise: Callable[[list[Turn]], str] | None = None) -> ContextBuilder:
        """Adds the last turns of a conversation. With `summarise`, one turn with its text replaces the older ones."""
        if len(turns) <= self._max_turns:
            return self.add("conversation_history", [dict(turn) for turn in turns])
        if summarise is None:
            return self.add("conversation_history", [dict(turn) for turn in turns[-self._max_turns :]])
        recent = len(turns) - (self._max_turns - 1)
        summary = {"role": "system", "content": summarise(list(turns[:recent]))}
        return self.add("conversation_history", [summary, *(dict(turn) for turn in turns[recent:])])

    def user_profile(self, profile: Mapping[str, Any]) -> ContextBuilder:
        """Adds facts about the user."""
        return self.add("user_profile", dict(profile))

    def session_state(self, state: Mapping[str, Any]) -> ContextBuilder:
        """Adds the state of the session."""
        return self.add("session_state", dict(state))

    def previous_result(self, module: str, envelope: Envelope) -> ContextBuilder:
        """Adds the answer of an earlier module. A failure has no result and changes nothing."""
        if not envelope.ok:
            return self
        return self.add("previous_result", {"module": module, "meta": envelope.meta, "data": envelope.data})

    def add(self, kind: str, value: Any) -> ContextBuilder:
        """Adds context of any type."""
        self._context[kind] = value
        return self

    def build(self) -> dict[str, Any]:
        """Returns the context by type."""
        return dict(self._context)

    def into_input(self, input: Mapping[str, Any]) -> dict[str, Any]:
        """Returns an input with this context."""
        return {**input, "_context": self.build()}
