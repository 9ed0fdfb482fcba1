"""The API that the specification prints, against the embedded model; and the package of that name beside another one.
(API-001, STREAM-024)"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from answers import DATA, INPUT, as_generator


def printed() -> str:
    """The code of section 10.2, as the document has it."""
    place = os.environ.get("COGN_TEST_SPEC")
    if not place:
        pytest.skip("the specification is not here")
    section = Path(place).read_text(encoding="utf-8").split("### 10.2 ")[1]
    return section.split("```python\n")[1].split("```")[0]


# API-001, STREAM-024: the code of V25 §10.2 runs as printed.
def test_api_001_the_code_of_the_specification_runs_as_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    if not os.environ.get("COGN_MODEL"):
        pytest.skip("the weights of the embedded model are not here")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    code = printed()
    assert "async for chunk in runtime.execute_stream(module, input):" in code and "result = runtime.execute(module, input)" in code
    body = "".join(f"    {line}\n" for line in code.splitlines())
    scope: dict[str, Any] = {}
    exec(compile(f"async def main(module, input):\n{body}    return result\n", "spec-v2.5.md", "exec"), scope)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        result = asyncio.run(scope["main"]("text-classifier", {"text": "What a wonderful day, everything went well!"}))
    assert result["ok"] is True and result.data["sentiment"] == "positive", result
    assert result.meta["model"].startswith("embedded/")
    chunks = [eval(line) for line in said.getvalue().splitlines()]
    assert chunks[0]["streaming"] is True and chunks[-1]["final"] is True
    assert chunks[-1]["data"] == result["data"]


def test_api_001_switches_of_the_runtime() -> None:
    from cognitive import CognitiveRuntime

    async def chunks(runtime: Any) -> list[Any]:
        return [chunk async for chunk in runtime.execute_stream("text-classifier", INPUT)]

    whole = CognitiveRuntime(streaming=False, multimodal=False, provider=as_generator, env=False)
    assert whole.execute("text-classifier", INPUT)["data"] == DATA
    pieces = asyncio.run(chunks(whole))
    assert pieces[-1]["data"] == DATA and not any("chunk" in piece for piece in pieces)
    pieces = asyncio.run(chunks(CognitiveRuntime(provider=as_generator, env=False)))
    assert pieces[-1]["data"] == DATA and any("chunk" in piece for piece in pieces)
    image = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    assert whole.execute("image-analyzer", {"images": [image]})["error"]["code"] == "E4011"


def imported(site: Path) -> str:
    """The output of an import of `cognitive`, with this folder before all others."""
    text = "import sys; sys.path.insert(0, sys.argv[1])\ntry:\n    import cognitive; print('loaded')\nexcept ImportError as error:\n    print(error)\nimport cogn; print(cogn.__version__)"
    done = subprocess.run([sys.executable, "-c", text, str(site)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_refuses_to_load_beside_another_of_its_name(tmp_path: Path) -> None:
    import cognitive

    own = Path(cognitive.__file__).parent
    assert imported(tmp_path).startswith("loaded\n")
    # Installed after the other one: files of both lie in one folder.
    mixed = tmp_path / "mixed"
    (mixed / "cognitive").mkdir(parents=True)
    for name in ("__init__.py", "py.typed"):
        (mixed / "cognitive" / name).write_bytes((own / name).read_bytes())
    assert imported(mixed).startswith("loaded\n")
    (mixed / "cognitive" / "runner.py").write_text("")
    said = imported(mixed)
    assert "claimed by another distribution, to which these files belong: runner.py" in said and "import cogn" in said
    # Identified by its metadata, regardless of the order of installation.
    (mixed / "cognitive" / "runner.py").unlink()
    info = mixed / "cognitive_modules-2.2.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cognitive-modules\nVersion: 2.2.3\n")
    assert "the distribution `cognitive-modules` 2.2.3" in imported(mixed)
