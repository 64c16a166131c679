"""Profiles of traces built by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from deepscope.analysis.build import build_profile
from deepscope.records import Line, Profile
from deepscope.trace.model import Trace
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder

Build = Callable[..., Profile]


@pytest.fixture
def read(tmp_path: Path) -> Callable[[TraceBuilder], Trace]:
    """The trace of a builder, by way of a file."""
    return lambda builder: read_trace(builder.write(tmp_path / "built.json"))


@pytest.fixture
def profile_of(read: Callable[[TraceBuilder], Trace]) -> Build:
    """The profile of a builder's trace: `profile_of(builder, step=3)`."""
    return lambda builder, **view: build_profile(read(builder), **view)


@pytest.fixture
def at() -> Callable[[Profile, int], Line]:
    """The one line of a profile with a number."""

    def find(profile: Profile, number: int) -> Line:
        (line,) = (line for line in profile.lines if line.line == number)
        return line

    return find
