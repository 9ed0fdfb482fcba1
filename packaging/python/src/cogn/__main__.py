"""`python -m cogn`, `cog` and `cognitive-runtime`: replace this process by the program, so that it gets the signals
and the terminal."""

import os
import subprocess
import sys

from ._binary import binary


def main() -> None:
    """Starts the program with the arguments of this process, and ends with its exit code."""
    try:
        program = binary()
    except FileNotFoundError as error:
        raise SystemExit(f"error: {error}") from None
    arguments = [program, *sys.argv[1:]]
    if sys.platform == "win32":
        raise SystemExit(subprocess.run(arguments, check=False).returncode)
    os.execv(program, arguments)


if __name__ == "__main__":
    main()
