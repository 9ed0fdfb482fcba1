"""The examples of docs/columns.md, run as they stand: what a block prints is the block below it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import cogn._runtime

from stub_service import StubService

PAGE = Path(__file__).resolve().parents[3] / "docs" / "columns.md"
BLOCK = re.compile(r"```python( needs=(?P<needs>\w+))?\n(?P<code>.*?)```\n+```text\n(?P<printed>.*?)```", re.DOTALL)

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the page is in the checkout")


def blocks() -> list[re.Match[str]]:
    text = PAGE.read_text() if PAGE.exists() else ""
    found = list(BLOCK.finditer(text))
    assert len(found) == text.count("```python"), "a block without what it prints is not run"
    return found


@pytest.mark.parametrize("block", [pytest.param(block, marks=pytest.mark.needs(block["needs"]), id=f"{block['needs']}-{block.start()}") for block in blocks()])
def test_an_example_prints_what_the_page_says(block: re.Match[str], stub: StubService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cogn._runtime, "_default", None)
    monkeypatch.setenv("LLM_PROVIDER", "openai")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", stub.base)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block["code"], str(PAGE), "exec"), {"__name__": "example"})
    if block["needs"] == "ray":
        import ray

        ray.shutdown()
    assert printed.getvalue() == block["printed"]
