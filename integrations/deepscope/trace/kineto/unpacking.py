"""How much a compressed trace may unpack to: a file of two megabytes can hold two gigabytes of nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass

from deepscope.errors import TraceError, VariableError

VARIABLE = "DEEPSCOPE_MAX_UNPACKED_GB"
"""Environment variable: the limit in gigabytes, 0 for none."""

_HARMLESS_BYTES = 128 << 20
_HIGHEST_RATIO = 100
"""Recorded traces unpack to 10 to 40 times their size; gzip can write 1,030 times."""
_MOST_BYTES = 32 << 30


@dataclass(frozen=True, slots=True)
class UnpackLimit:
    """At most so many bytes, and beyond 128 MiB at most `ratio` times the compressed ones; 0: no limit."""

    most_bytes: int
    ratio: int

    @classmethod
    def of_environment(cls) -> UnpackLimit:
        """What the variable says; without it 32 GiB, and 100 times the compressed size.

        Raises:
            VariableError: the variable holds no number of gigabytes.
        """
        word = os.environ.get(VARIABLE, "")
        if not word:
            return cls(_MOST_BYTES, _HIGHEST_RATIO)
        try:
            gigabytes = float(word)
            return cls(int(gigabytes * 10**9) if gigabytes > 0 else 0, 0)
        except (ValueError, OverflowError):
            raise VariableError(f"{VARIABLE}={word}: must be a number of gigabytes, 0 for no limit") from None

    def check(self, path: str, packed_bytes: int, unpacked_bytes: int) -> None:
        """Raises `TraceError` where so many bytes, unpacked from so many, are too many."""
        if self.most_bytes and unpacked_bytes > self.most_bytes:
            found = f"more than {self.most_bytes / 10**9:.4g} GB"
        elif self.ratio and unpacked_bytes > max(_HARMLESS_BYTES, self.ratio * packed_bytes):
            found = f"more than {self.ratio} times its size, which no recorder writes"
        else:
            return
        raise TraceError(f"{path}: unpacks to {found}; if it is to be read all the same, set {VARIABLE}=0 (no limit)")
