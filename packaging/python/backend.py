"""Builds the distribution from source, for `pip`: maturin makes the wheel of the library and the Python files, and cargo the program
`cogn` before that, which installers put beside `python`. Needs Rust, and a checkout of the whole repository: there is no sdist."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

import maturin
from maturin import get_requires_for_build_wheel  # noqa: F401 - a hook of PEP 517

_HERE = pathlib.Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
_SCRIPTS = _HERE / "cognitive_runtime.data" / "scripts"
_PROGRAM = "cogn.exe" if sys.platform == "win32" else "cogn"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The wheel, with the program in it."""
    with _parts():
        return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    """A source distribution would lack the program, which is another crate."""
    raise SystemExit("there is no source distribution: build from a checkout, with `pip install packaging/python`")


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The same for `pip install -e`."""
    with _parts():
        return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


@contextlib.contextmanager
def _parts():
    """The program and the licences, where maturin looks for them, as long as it does."""
    licences = [_HERE / path.name for path in _ROOT.glob("LICENSE-*")]
    try:
        for licence in licences:
            shutil.copy(_ROOT / licence.name, licence)
        _SCRIPTS.mkdir(parents=True, exist_ok=True)
        shutil.copy(_program(), _SCRIPTS / _PROGRAM)
        yield
    finally:
        shutil.rmtree(_SCRIPTS.parent, ignore_errors=True)
        for licence in licences:
            licence.unlink(missing_ok=True)


def _program():
    given = os.environ.get("COGN_BINARY")
    if given:
        return given
    command = ["cargo", "build", "--release", "--locked", "--package", "cogn-cli", "--bin", "cogn"]
    subprocess.run(command, cwd=_ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or _ROOT / "target")
    return target / "release" / _PROGRAM
