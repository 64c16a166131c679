"""Timelines of built and recorded traces."""

from collections.abc import Callable
from pathlib import Path

import pytest

from deepscope.analysis.ownership.attribution import attribute
from deepscope.dashboard.timeline.build import build_timeline
from deepscope.dashboard.timeline.index import TimelineIndex
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder

Open = Callable[[TraceBuilder], TimelineIndex]


@pytest.fixture
def timeline_of(tmp_path: Path) -> Open:
    """The timeline of a builder's trace."""

    def make(builder: TraceBuilder) -> TimelineIndex:
        return TimelineIndex(
            build_timeline(attribute(read_trace(str(builder.write(tmp_path / "built.pt.trace.json")))))
        )

    return make
