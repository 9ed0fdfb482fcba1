"""The examples of docs/python.md, docs/columns.md and docs/python-tests.md, run unchanged: the output of a block is the block below it."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cogn._runtime

from stub_service import StubService

ROOT = Path(__file__).resolve().parents[3]
PAGES = [page for page in (ROOT / "docs" / "columns.md", ROOT / "docs" / "python.md", ROOT / "docs" / "python-tests.md") if page.exists()]
BLOCK = re.compile(r"```python( needs=(?P<needs>\w+))?( file=(?P<file>\S+))?\n(?P<code>.*?)```\n+```text\n(?P<printed>.*?)```", re.DOTALL)


def examples() -> list[object]:
    found: list[object] = []
    for page in PAGES:
        text = page.read_text()
        blocks = list(BLOCK.finditer(text))
        assert len(blocks) == text.count("```python"), "a block without what it prints is not run"
        for block in blocks:
            line = text.count("\n", 0, block.start()) + 1
            found.append(pytest.param(block, marks=pytest.mark.needs(block["needs"]), id=f"{page.name}:{line}"))
    return found


@pytest.mark.parametrize("block", examples())
def test_an_example_prints_what_the_page_says(
    block: re.Match[str], stub: StubService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(cogn._runtime, "_default", None)
    monkeypatch.setenv("LLM_PROVIDER", "openai")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", stub.base)
    # Workers of Spark take another Python otherwise.
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    # Pages speak of the folder `modules` in the working directory.
    monkeypatch.chdir(tmp_path)
    os.symlink(ROOT / "modules", "modules")
    if block["file"]:
        Path(block["file"]).write_text(block["code"])
        plugin = [] if request.config.pluginmanager.has_plugin("cogn") else ["-p", "cogn.pytest_plugin"]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, block["file"]]
        printed = subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout
    else:
        heard = io.StringIO()
        with contextlib.redirect_stdout(heard):
            exec(compile(block["code"], "example", "exec", dont_inherit=True), {"__name__": "example"})
        printed = heard.getvalue()
    if block["needs"] == "ray":
        import ray

        ray.shutdown()
    expected = re.escape(block["printed"].strip()).replace(r"\[\.\.\]", ".*")
    assert re.fullmatch(expected, printed.strip()), printed
