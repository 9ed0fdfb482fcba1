"""The examples run, and they and the package satisfy mypy and pyright in their strict forms."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from answers import ANSWER, runtime

PACKAGE = Path(__file__).resolve().parents[1]
EXAMPLES = PACKAGE / "examples"


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_shown_here() -> None:
    shown = Path(__file__).read_text(encoding="utf-8") + "".join(
        path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py")
    )
    for path in EXAMPLES.glob("*.py"):
        assert f'"{path.stem}"' in shown, f"{path.name} is run by no test"


def test_hello(capsys: pytest.CaptureFixture[str]) -> None:
    if not os.environ.get("COGN_MODEL"):
        pytest.skip("the weights of the embedded model are not here")
    example("hello")
    assert capsys.readouterr().out == "positive\n"


def test_typed(capsys: pytest.CaptureFixture[str]) -> None:
    shipping = {**ANSWER, "data": {**ANSWER["data"], "sentiment": "negative", "label": "shipping"}}
    example("typed").main(runtime(lambda call: shipping))
    assert capsys.readouterr().out == "negative shipping\n"


def test_stream(capsys: pytest.CaptureFixture[str]) -> None:
    data = {"rationale": "It is short.", "summary": "Snow stopped the trains."}
    answer = {"ok": True, "data": data, "meta": ANSWER["meta"]}
    asyncio.run(example("stream").main(runtime(lambda call: answer)))
    out = capsys.readouterr().out
    assert out.startswith("It is short.") and "Snow stopped the trains." in out.splitlines()[-1]


def test_own_provider(capsys: pytest.CaptureFixture[str]) -> None:
    example("own_provider").main()
    assert capsys.readouterr().out.startswith('{"ok":true,')


def test_own_tool() -> None:
    assert "text-classifier" in example("own_tool").runtime().names()


def test_specification(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(example("specification").main(provider=lambda call: ANSWER, env=False))
    lines = capsys.readouterr().out.splitlines()
    assert "'final': True" in lines[-2] and lines[-1].startswith("Envelope({'ok': True")


def checked(*command: str) -> None:
    """A checker judges the sources of the package and the examples, which import it from there."""
    done = subprocess.run([sys.executable, "-m", *command], cwd=PACKAGE, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_is_satisfied(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    checked("mypy", "--strict", f"--cache-dir={tmp_path}", "src/cogn", "src/cognitive", "examples")


def test_a_misspelt_option_fails_the_type_check(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    program = tmp_path / "typo.py"
    program.write_text('import cogn\n\ncogn.run("m", {}, reaks=1)\ncogn.run("m", {}, reask="1")\n', encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={tmp_path}", str(program)]
    environment = {**os.environ, "MYPYPATH": str(PACKAGE / "src")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=170)
    assert "did you mean \"reask\"?" in done.stdout and "typo.py:4: error" in done.stdout, done.stdout + done.stderr


def test_pyright_is_satisfied(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyright")
    # It is kept in the home of the user, which other tests have none of.
    monkeypatch.setenv("HOME", os.path.expanduser(f"~{os.environ.get('USER') or 'root'}"))
    checked("pyright", "--project", "pyproject.toml", "src", "examples")
