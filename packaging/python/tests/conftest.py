"""What tests of the package share: a model service on 127.0.0.1, and nothing of the machine's own configuration."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stub_service import StubService

# Engines that would report home do not.
os.environ.update(DO_NOT_TRACK="1", DAFT_ANALYTICS_ENABLED="0", RAY_USAGE_STATS_ENABLED="0")


@pytest.fixture(scope="session")
def stub() -> Iterator[StubService]:
    with StubService() as service:
        yield service


@pytest.fixture
def stub_with_delay() -> Iterator[StubService]:
    """A service of its own, which takes 50 ms for each answer."""
    with StubService(0.05) as service:
        yield service


@pytest.fixture
def slow_stub() -> Iterator[StubService]:
    """A service of its own, which holds all answers back until it is released."""
    with StubService(hold=True) as service:
        yield service


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("home")
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(home))
    return home
