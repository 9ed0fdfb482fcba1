"""The program `cogn`, the runtime for Cognitive Modules, as a Python distribution.

`binary()` is where the program lies; `python -m cogn` starts it.
"""

from ._binary import binary

__all__ = ["binary"]
