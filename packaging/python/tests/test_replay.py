"""`cogn.replay` and the plugin of pytest: recorded replies answer, and golden tests are tests."""

from __future__ import annotations

import asyncio
import json
import runpy
import threading
from pathlib import Path
from typing import Any

import pytest

import cogn

MODULES = Path(__file__).resolve().parents[3] / "modules"
SCHEMA = {
    "input": {"type": "object", "required": ["q"]},
    "data": {"type": "object", "required": ["rationale"], "properties": {"rationale": {"type": "string"}, "word": {"type": "string"}}},
}


def reply(word: str) -> str:
    meta = {"confidence": 0.9, "risk": "low", "explain": "e"}
    return json.dumps({"ok": True, "meta": meta, "data": {"rationale": "r", "word": word}})


def write(root: Path, files: dict[str, Any]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))


def module_files(name: str) -> dict[str, Any]:
    manifest = f"name: {name}\nversion: 1.0.0\nresponsibility: Answer\n"
    return {f"{name}/module.yaml": manifest, f"{name}/prompt.md": "Answer.", f"{name}/schema.json": SCHEMA}


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A module without replies, and replies beside the tests of a program."""
    write(tmp_path / "modules", module_files("tiny"))
    write(tmp_path, {"tests/tiny/a.input.json": {"q": 1}, "tests/tiny/a.reply.txt": reply("one")})
    write(tmp_path, {"inner/tiny/b.input.json": {"q": 2}, "inner/tiny/b.reply.txt": reply("two")})
    return tmp_path


@pytest.fixture
def runtime(recorded: Path) -> cogn.Runtime:
    def nobody(call: Any) -> str:
        raise AssertionError("a model was asked")

    return cogn.Runtime(provider=nobody, modules=recorded / "modules", env=False)


def words(runtime: cogn.Runtime, *questions: int) -> list[Any]:
    envelopes = (runtime.run("tiny", {"q": question}) for question in questions)
    return [each.data["word"] if each.data else (each.error or {}).get("code") for each in envelopes]


def test_007_recorded_replies_answer_and_nobody_else(recorded: Path, runtime: cogn.Runtime) -> None:
    with cogn.replay(recorded / "tests") as replayed:
        assert len(replayed) == 1
        assert words(runtime, 1, 2) == ["one", "E4001"]
        with cogn.replay(recorded / "inner"):
            assert words(runtime, 1, 2) == ["one", "two"]
        assert words(runtime, 2) == ["E4001"]
    assert "a model was asked" in runtime.run("tiny", {"q": 1})["error"]["message"]


def test_a_relative_folder_starts_at_the_file_that_names_it(
    recorded: Path, runtime: cogn.Runtime, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["import cogn", "", '@cogn.replay("tests")', "def word(runtime):", '    return runtime.run("tiny", {"q": 1}).data["word"]']
    write(recorded, {"program.py": "\n".join(lines)})
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert runpy.run_path(str(recorded / "program.py"))["word"](runtime) == "one"


def test_a_reply_is_read_in_the_dialect_that_was_recorded_with_it_d_18(recorded: Path, runtime: cogn.Runtime) -> None:
    meta = {"confidence": 0.9, "risk": "low", "explain": "e"}
    bound = json.dumps({"ok": True, "data": {"rationale": "r", "word": None}, "error": None, "meta": meta})
    write(recorded, {"tests/tiny/c.input.json": {"q": 3}, "tests/tiny/c.reply.txt": bound})
    with cogn.replay(recorded / "tests"):
        assert (runtime.run("tiny", {"q": 3}).error or {})["code"] == "E3001", "no dialect is no schema"
    write(recorded, {"tests/tiny/c.reply.json": {"reply_dialect": "openai"}})
    with cogn.replay(recorded / "tests"):
        envelope = runtime.run("tiny", {"q": 3})
        assert envelope.data == {"rationale": "r"}
        assert "REPAIRED" not in str(envelope["meta"])
        last = list(runtime.stream("tiny", {"q": 3}))[-1]
        assert (last["envelope"]["data"] if "envelope" in last else last["data"]) == {"rationale": "r"}
    write(recorded, {"tests/tiny/c.reply.json": {"reply_dialect": "gpt"}})
    with pytest.raises(ValueError, match="unknown schema dialect: `gpt`"), cogn.replay(recorded / "tests"):
        pass


def test_every_way_to_run_is_replayed(recorded: Path, runtime: cogn.Runtime) -> None:
    async def in_a_loop() -> list[Any]:
        envelope = await runtime.arun("tiny", {"q": 1})
        last = [chunk async for chunk in runtime.astream("tiny", {"q": 1})][-1]
        return [envelope.data, last["envelope"]["data"] if "envelope" in last else last["data"]]

    with cogn.replay(recorded / "tests"):
        answers = asyncio.run(in_a_loop())
        last = list(runtime.stream("tiny", {"q": 1}))[-1]
        answers.append(last["envelope"]["data"] if "envelope" in last else last["data"])
        from_thread: list[Any] = []
        thread = threading.Thread(target=lambda: from_thread.extend(words(runtime, 1)))
        thread.start()
        thread.join()
    assert [answer["word"] for answer in answers] == ["one"] * 3
    assert from_thread == ["one"]


def test_a_decorator_holds_for_one_call(recorded: Path, runtime: cogn.Runtime) -> None:
    @cogn.replay(recorded / "tests")
    def ask() -> list[Any]:
        return words(runtime, 1)

    @cogn.replay(recorded / "tests")
    async def ask_later() -> Any:
        return (await runtime.arun("tiny", {"q": 1})).data

    assert ask() == ask() == ["one"]
    assert asyncio.run(ask_later())["word"] == "one"
    assert words(runtime, 1) == ["E4001"]
    with pytest.raises(TypeError, match="generator"):
        cogn.replay("tests")(lambda: (yield))


def test_a_folder_without_recordings_is_said(tmp_path: Path) -> None:
    for folder, words in ((tmp_path, "no recordings in"), (tmp_path / "none", "cannot read")):
        with pytest.raises(ValueError, match=words), cogn.replay(folder):
            pass


pytest_plugins = ["pytester"]


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    write(pytester.path, module_files("tiny"))
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    plugin = [] if project._request.config.pluginmanager.has_plugin("cogn") else ["-p", "cogn.pytest_plugin"]
    return project.runpytest_inprocess(*plugin, *arguments)


def test_golden_tests_are_items_with_readable_failures(project: pytest.Pytester) -> None:
    cases = {"good": ({"word": "one"}, reply("one")), "bad": ({"word": "one"}, reply("two")), "unheard": ({"word": "one"}, None)}
    for name, (expected, answer) in cases.items():
        write(project.path, {f"tiny/tests/{name}.input.json": {"q": 1}, f"tiny/tests/{name}.expected.json": expected})
        if answer:
            write(project.path, {f"tiny/tests/{name}.reply.txt": answer})
    write(project.path, {"tiny/tests/refused.input.json": {}, "tiny/tests/refused.expected.json": {"error": {"code": "E1001"}}})
    result = run(project, "--cogn", "-v")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*tiny/module.yaml::good PASSED*", "*tiny/module.yaml::refused PASSED*"])
    result.stdout.fnmatch_lines(
        ["*bad.input.json: the answer is not as expected", "  data.word", '    expected "one"', '    got      "two"'], consecutive=True
    )
    result.stdout.fnmatch_lines(["*unheard.input.json: the model would have to be asked", "  no reply is recorded: `tests/unheard.reply.txt`"])
    assert "Traceback" not in result.stdout.str() and "pytest_plugin.py" not in result.stdout.str()


def test_nothing_is_collected_without_being_asked(project: pytest.Pytester) -> None:
    write(project.path, {"tiny/tests/a.input.json": {"q": 1}, "tiny/tests/a.expected.json": {"word": "one"}, "tiny/tests/a.reply.txt": reply("one")})
    assert run(project).ret == pytest.ExitCode.NO_TESTS_COLLECTED
    run(project, "tiny/module.yaml").assert_outcomes(passed=1)
    run(project, "--cogn", "tiny/module.yaml::a").assert_outcomes(passed=1)
    project.makeini("[pytest]\ncogn = true\n")
    run(project).assert_outcomes(passed=1)


def test_a_module_that_cannot_be_loaded_fails(project: pytest.Pytester) -> None:
    (project.path / "tiny" / "schema.json").write_text("{")
    result = run(project, "--cogn")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*tiny/module.yaml: the module cannot be tested", "*schema.json*"])


def test_a_module_without_tests_is_no_failure(project: pytest.Pytester) -> None:
    assert run(project, "--cogn").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_the_fixture_replays_beside_the_test(project: pytest.Pytester) -> None:
    write(project.path, {"replies/tiny/a.input.json": {"q": 1}, "replies/tiny/a.reply.txt": reply("one")})
    project.makepyfile(
        """
        import cogn
        import pytest

        @pytest.mark.cogn_replay("replies")
        def test_a(cogn_replay):
            runtime = cogn.Runtime(modules=".", env=False)
            assert runtime.run("tiny", {"q": 1}).data["word"] == "one"
        """
    )
    run(project, "--strict-markers").assert_outcomes(passed=1)


@pytest.mark.skipif(not MODULES.exists(), reason="the bundled modules are in the checkout")
def test_the_bundled_modules_pass(project: pytest.Pytester) -> None:
    result = run(project, "--cogn", "-q", str(MODULES))
    outcomes = result.parseoutcomes()
    assert outcomes.get("failed", 0) == 0 and outcomes["passed"] > 30, outcomes
