"""How long a thread waits for a core that others have."""

from __future__ import annotations

import os

_SCHEDULER = "/proc/thread-self/schedstat"
"""Linux: ns on a core, ns waiting for one, and how often it had one (Documentation/scheduler/sched-stats.rst)."""
_LONGEST = 64


def core_wait_ns() -> int | None:
    """How long the calling thread could have run and had no core, since it started; some microseconds of work.

    None where the system does not tell.
    """
    try:
        file = os.open(_SCHEDULER, os.O_RDONLY)
    except OSError:
        return None
    try:
        return int(os.read(file, _LONGEST).split()[1])
    except (OSError, ValueError, IndexError):
        return None
    finally:
        os.close(file)
