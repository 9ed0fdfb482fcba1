"""The version of the workspace, which is that of the wheel. Read while the wheel is built, and not part of it."""

import os
import pathlib
import re


def version() -> str:
    """`COGN_VERSION`, else what `Cargo.toml` at the top of the repository says."""
    given = os.environ.get("COGN_VERSION")
    if given:
        return given
    manifest = pathlib.Path(__file__).resolve().parents[2] / "Cargo.toml"
    found = re.search(r'^version = "([^"]+)"', manifest.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{manifest} names no version")
    return found.group(1)
