"""Why a test may be skipped: a closed list. Skipping for any other reason is a failure, here as in CI."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

__all__ = ["is_allowed"]


class _Reason(NamedTuple):
    words: str
    """A pattern that the whole reason matches."""
    also_in_ci: bool
    """False where CI has what is lacking, so that the test must run there."""


_ALLOWED = (
    # No machine of the project's has one; scripts/gpu-check runs them where there is.
    _Reason(r"torch \S+ was built without CUDA", also_in_ci=True),
    _Reason(r"no CUDA device.*", also_in_ci=True),
    _Reason(r"one CUDA device; .*", also_in_ci=True),
    _Reason(r"there is a CUDA device", also_in_ci=True),
    # The traces are other people's and no part of the repository.
    _Reason(r"no recorded traces at .*", also_in_ci=True),
    # What a test forbids, root may do all the same; and the other way round.
    _Reason(r"root may .*", also_in_ci=True),
    _Reason(r"only root may .*", also_in_ci=True),
    # Hooks that only one of the two back ends has.
    _Reason(r"sys\.(monitoring|settrace) is not the back end of this Python", also_in_ci=True),
    _Reason(r"Python 3\.14 has no need of preparation", also_in_ci=True),
    _Reason(r"no IPv6 on this machine", also_in_ci=True),
    # What other machines lack; CI has it.
    _Reason(r"torch \S+ was built without NCCL", also_in_ci=False),
    _Reason(r"no Triton", also_in_ci=False),
    _Reason(r"(nvidia-ml-py|psutil) is not installed", also_in_ci=False),
    _Reason(r"/proc is Linux's", also_in_ci=False),
    _Reason(r"Lightning is not installed", also_in_ci=False),
    _Reason(r".* on Windows", also_in_ci=False),
    # Other counters and models, tried beside ours where someone has them; published figures are tested everywhere.
    _Reason(r"fvcore is not installed: pip install \S+", also_in_ci=True),
    # Trainers of other frameworks, in versions that want a newer torch than the oldest one.
    _Reason(r"(transformers|accelerate|pytorch-ignite) is not installed: pip install \S+", also_in_ci=True),
    # Clients and servers of remote stores and clusters: the extras of stores bring them, and they are large.
    _Reason(
        r"(distributed|moto|flask|flask_cors|s3fs|adlfs|gcsfs|aiohttp|requests) is not installed: pip install \S+",
        also_in_ci=False,
    ),
    # Versions that cannot do what is tested.
    _Reason(r"(torch|fsspec) \S+ (cannot|has no|records no) .*", also_in_ci=True),
    # Entering a process that was started without a word; the tests' own Python may be too old for it.
    _Reason(r"no Python 3\.14( with torch)?: .*", also_in_ci=True),
    # scripts/test installs them where it may.
    _Reason(r"(Azurite|a GCS emulator|Hadoop's hdfs) is not installed: .*", also_in_ci=False),
    _Reason(r"\S+( with \S+)? is not installed \(Debian: apt-get install .*\)", also_in_ci=False),
)


def is_allowed(reason: str) -> bool:
    """Whether a test may be skipped for this reason on this machine."""
    in_ci = bool(os.environ.get("CI"))
    return any(re.fullmatch(allowed.words, reason) and (allowed.also_in_ci or not in_ci) for allowed in _ALLOWED)
