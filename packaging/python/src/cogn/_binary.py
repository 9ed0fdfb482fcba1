"""Finds the program that came with this distribution. Looks at no `PATH`: another `cogn` there may be of another version."""

import pathlib
import sys
import sysconfig

_NAME = "cogn.exe" if sys.platform == "win32" else "cogn"


def _folders():
    # Where `pip` put it: in the scripts of this environment, or in those of `pip install --user`.
    yield sysconfig.get_path("scripts")
    if sys.version_info >= (3, 10):
        yield sysconfig.get_path("scripts", scheme=sysconfig.get_preferred_scheme("user"))
    # With `pip install --target DIR` it lies in `DIR/bin`.
    yield str(pathlib.Path(__file__).resolve().parents[1] / "bin")


def binary() -> str:
    """The path of the program. Raises `FileNotFoundError` if the installation has lost it."""
    folders = [folder for folder in _folders() if folder]
    for folder in folders:
        path = pathlib.Path(folder) / _NAME
        if path.is_file():
            return str(path)
    raise FileNotFoundError(f"{_NAME} is in none of: {', '.join(folders)}; reinstall cognitive-runtime")
