"""The fixtures of all tests of the package: a model service on 127.0.0.1, and nothing of the machine's own configuration."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stub_service import StubService

# Data engines that would report home do not.
os.environ.update(DO_NOT_TRACK="1", DAFT_ANALYTICS_ENABLED="0", RAY_USAGE_STATS_ENABLED="0")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*engines): passed over where a data engine is not installed, unless it has to be")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        missing = [name for name in marker.args if name and importlib.util.find_spec(name) is None]
        # Ray starts eight processes for one row, and Spark a Java; their place is the benchmark, and a machine that has them.
        has_to = not set(missing) <= {"ray", "pyspark"} and os.environ.get("COGN_TEST_STRICT") == "1"
        if missing and has_to and "data-engines" not in os.environ.get("COGN_TEST_MAY_LACK", "").split(","):
            pytest.fail(f"not installed: {', '.join(missing)}", pytrace=False)
        if missing:
            pytest.skip(f"not installed: {', '.join(missing)}")


@pytest.fixture(scope="session")
def stub() -> Iterator[StubService]:
    with StubService() as service:
        yield service


@pytest.fixture
def stub_with_delay() -> Iterator[StubService]:
    """A separate service, which takes 50 ms for each answer."""
    with StubService(0.05) as service:
        yield service


@pytest.fixture
def slow_stub() -> Iterator[StubService]:
    """A separate service, which holds all answers back until it is released."""
    with StubService(hold=True) as service:
        yield service


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("home")
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(home))
    return home
