"""Puts the program into the wheel and names the platform that it runs on. Builds nothing and fetches nothing.

`COGN_BINARY` is the path of the program, `COGN_WHEEL_PLATFORM` the platform tag, such as
`manylinux_2_17_x86_64.musllinux_1_1_x86_64` for a static one. Without the tag it is that of this machine.
"""

import os
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BinaryHook(BuildHookInterface):
    """Adds the binary as a script, which installers put beside `python` unchanged."""

    def initialize(self, version, build_data):
        binary = os.environ.get("COGN_BINARY")
        if version == "editable" or not binary:
            raise SystemExit("set COGN_BINARY to the path of a built `cogn`")
        if not os.access(binary, os.X_OK):
            raise SystemExit(f"COGN_BINARY is not a program: {binary}")
        platform = os.environ.get("COGN_WHEEL_PLATFORM")
        if not platform:
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        suffix = ".exe" if platform.startswith("win") else ""
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["shared_scripts"] = {os.path.abspath(binary): f"cogn{suffix}"}
