"""Finds the program that came with this distribution. Ignores `PATH`, because a `cogn` found there may have another
version."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

_NAME = "cogn.exe" if sys.platform == "win32" else "cogn"


def _folders() -> Iterator[str]:
    # `pip` installs it into the scripts of this environment, or into those of `pip install --user`.
    import sysconfig

    yield sysconfig.get_path("scripts")
    yield sysconfig.get_path("scripts", scheme=sysconfig.get_preferred_scheme("user"))
    # With `pip install --target DIR` it is in `DIR/bin`.
    yield os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "bin")


def binary() -> str:
    """The path of the program. Raises `FileNotFoundError` if it is missing from the installation."""
    folders = [folder for folder in _folders() if folder]
    for folder in folders:
        path = os.path.join(folder, _NAME)
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(f"{_NAME} is in none of: {', '.join(folders)}; reinstall cognitive-runtime")
