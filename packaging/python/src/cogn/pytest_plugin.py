"""Golden tests of modules as tests of pytest, and recorded replies as a fixture.

`pytest --cogn` collects the cases of every module folder that it visits; a module that is named on the command line
(`pytest modules/my-module/module.yaml`) is always tested. The runtime decides which cases pass, as in `cogn test`.
Without `--cogn` (or `cogn = true` in the configuration of pytest) other tests do not change.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ._replay import replay

# The files that identify a module folder, newest format first.
_MANIFESTS = ("module.yaml", "MODULE.md", "module.md")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cogn", "modules of cogn")
    group.addoption("--cogn", action="store_true", default=False, help="run the golden tests of module folders")
    parser.addini("cogn", "run the golden tests of module folders", type="bool", default=False)
    parser.addini("cogn_replay", "the folder with the recorded replies of the fixture `cogn_replay`, from the root", default="tests")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cogn_replay(folder): the folder with the recorded replies of the fixture `cogn_replay`")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ModuleFile | None:
    if file_path.name not in _MANIFESTS or not _is_manifest(file_path):
        return None
    config = parent.config
    if config.getoption("--cogn") or config.getini("cogn") or parent.session.isinitpath(file_path):
        collected: ModuleFile = ModuleFile.from_parent(parent, path=file_path)
        return collected
    return None


def _is_manifest(path: Path) -> bool:
    """Returns whether a file is the manifest of its folder. Some file systems ignore case, and a folder may have
    files of two formats."""
    there = os.listdir(path.parent)
    return path.name == next((name for name in _MANIFESTS if name in there), None)


class ModuleFile(pytest.File):
    """A module folder, by its manifest."""

    def collect(self) -> Iterator[GoldenItem]:
        from . import _native

        cases, trouble = _native.golden_cases(self.path.parent)
        for name, file in cases:
            yield GoldenItem.from_parent(self, name=name, file=Path(file))
        if trouble and not cases:
            # The file was named explicitly, so the fault counts.
            yield GoldenItem.from_parent(self, name="module", file=self.path)


class GoldenItem(pytest.Item):
    """One case of a module."""

    def __init__(self, *, file: Path, **more: Any) -> None:
        super().__init__(**more)
        self.file = file

    def runtest(self) -> None:
        from . import _native

        folder = self.path.parent
        if self.file == self.path:
            _, trouble = _native.golden_cases(folder)
            raise GoldenFailure({"status": "unusable", "message": trouble})
        result = _native.golden_run(folder, self.name)
        if result["status"] != "passed":
            raise GoldenFailure(result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, GoldenFailure):
            return excinfo.value.described(self.file)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[os.PathLike[str], int | None, str]:
        return self.file, None, f"{self.path.parent.name}: {self.name}"


class GoldenFailure(Exception):
    """A failed case, with the verdict of the runtime."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__(result["status"])
        self.result = result

    def described(self, file: Path) -> str:
        """Returns the report for people: each difference with its place, and a hint."""
        result = self.result
        lines = [f"{file}: {_HEADINGS.get(result['status'], result['status'])}"]
        if result.get("error"):
            lines.append(f"  the run failed with {result['error']}")
        for each in result.get("differences") or ():
            rule = "" if each["rule"] == "equals" else f" ({each['rule']})"
            lines += [f"  {each['path']}{rule}", f"    expected {each['expected']}", f"    got      {each['got']}"]
        lines += [f"  {line}" for line in str(result.get("message") or "").splitlines()]
        if result.get("hint"):
            lines.append(f"  hint, for `cogn test {file.parent.parent}`: {result['hint']}")
        return "\n".join(lines)


_HEADINGS = {
    "failed": "the answer is not as expected",
    "broken": "the case cannot be used",
    "not_recorded": "the model would have to be asked",
    "unusable": "the module cannot be tested",
}


@pytest.fixture
def cogn_replay(request: pytest.FixtureRequest) -> Iterator[replay]:
    """Answers all runs of a test with recorded replies: those of the folder that the marker `cogn_replay` names (beside the test
    file), or the setting `cogn_replay` (from the root; `tests` without it)."""
    from ._replay import replay

    marker = request.node.get_closest_marker("cogn_replay")
    if marker is None:
        folder = request.config.rootpath / request.config.getini("cogn_replay")
    else:
        folder = request.path.parent / marker.args[0]
    with replay(folder) as replayed:
        yield replayed
