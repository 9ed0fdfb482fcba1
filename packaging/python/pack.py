"""Puts the wheel together out of a library and a program that are built already. Builds nothing, fetches nothing, and needs nothing
but Python. The same parts give the same bytes.

    python pack.py --library LIB --program BIN --out DIR [--platform TAG] [--version V]
"""

import argparse
import base64
import hashlib
import os
import pathlib
import re
import sys
import sysconfig
import zipfile

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11
    from pip._vendor import tomli as tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NAME = "cognitive_runtime"
PACKAGES = ("cogn", "cognitive")


class Wheel:
    """The archive, with the record of what is in it."""

    def __init__(self, path: pathlib.Path) -> None:
        # Tests need no small wheel, but one soon.
        level = int(os.environ.get("COGN_WHEEL_COMPRESSION", "9"))
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level)
        self._level = level
        self._record: list[str] = []

    def add(self, name: str, content: bytes, mode: int = 0o644) -> None:
        info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(info, content, compresslevel=self._level)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self._record.append(f"{name},sha256={digest},{len(content)}")

    def close(self, info: str) -> None:
        name = f"{info}/RECORD"
        record = "".join(f"{line}\n" for line in [*self._record, f"{name},,"])
        self._zip.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), record)
        self._zip.close()


def metadata(project: dict, version: str) -> str:
    """The METADATA of the distribution, as `pyproject.toml` says it."""
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {version}",
        f"Summary: {project['description']}",
        f"Keywords: {','.join(project['keywords'])}",
        f"License-Expression: {project['license']}",
        *(f"License-File: {path.name}" for path in licences()),
        *(f"Classifier: {each}" for each in project["classifiers"]),
        f"Requires-Python: {project['requires-python']}",
    ]
    for extra, needs in project.get("optional-dependencies", {}).items():
        lines.append(f"Provides-Extra: {extra}")
        lines.extend(f"Requires-Dist: {need}; extra == '{extra}'" for need in needs)
    lines.append("Description-Content-Type: text/markdown")
    readme = (HERE / project["readme"]).read_text(encoding="utf-8")
    return "\n".join(lines) + "\n\n" + readme


def entry_points(project: dict) -> str:
    groups = {"console_scripts": project["scripts"], **project.get("entry-points", {})}
    return "\n".join(
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
        for group, entries in groups.items()
    )


def licences() -> list[pathlib.Path]:
    return sorted(ROOT.glob("LICENSE-*"))


def workspace_version() -> str:
    found = re.search(r'^version = "([^"]+)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit("Cargo.toml names no version")
    return found.group(1)


def built(path: pathlib.Path, what: str) -> bytes:
    """A part that was built. The first bytes of a file say whether it is one."""
    content = path.read_bytes() if path.is_file() else b""
    if content[:4] not in (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"MZ\x90\x00"):
        raise SystemExit(f"no {what}: {path}")
    return content


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--platform", default=sysconfig.get_platform().replace("-", "_").replace(".", "_"))
    parser.add_argument("--version", default=os.environ.get("COGN_VERSION") or workspace_version())
    given = parser.parse_args()

    library, program = built(given.library, "library"), built(given.program, "program")
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    windows = given.platform.startswith("win")
    tags = [f"cp310-abi3-{platform}" for platform in given.platform.split(".")]
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / f"{NAME}-{given.version}-cp310-abi3-{given.platform}.whl"
    info = f"{NAME}-{given.version}.dist-info"

    wheel = Wheel(path)
    for package in PACKAGES:
        for source in sorted((HERE / "src" / package).rglob("*")):
            if source.is_file() and source.suffix in (".py", ".pyi", ".typed"):
                wheel.add(source.relative_to(HERE / "src").as_posix(), source.read_bytes())
    wheel.add(f"cogn/_native{'.pyd' if windows else '.abi3.so'}", library, 0o755)
    wheel.add(f"{NAME}-{given.version}.data/scripts/cogn{'.exe' if windows else ''}", program, 0o755)
    for licence in licences():
        wheel.add(f"{info}/licenses/{licence.name}", licence.read_bytes())
    wheel.add(f"{info}/METADATA", metadata(project, given.version).encode())
    head = "Wheel-Version: 1.0\nGenerator: cogn\nRoot-Is-Purelib: false\n"
    wheel.add(f"{info}/WHEEL", (head + "".join(f"Tag: {tag}\n" for tag in tags)).encode())
    wheel.add(f"{info}/entry_points.txt", entry_points(project).encode())
    wheel.close(info)
    print(path)


if __name__ == "__main__":
    sys.exit(main())
