"""A time that is a part of another."""

from __future__ import annotations

from collections.abc import Iterable

from deepscope.dashboard.answer import PageAnswer


class Part(PageAnswer):
    """A time that is a part of another."""

    name: str
    time_ns: int
    share: float


def parts_of(times: Iterable[tuple[str, int]], whole_ns: int) -> list[Part]:
    """The parts of a whole that take any time."""
    return [
        Part(name=name, time_ns=time_ns, share=time_ns / whole_ns if whole_ns else 0.0)
        for name, time_ns in times
        if time_ns
    ]
