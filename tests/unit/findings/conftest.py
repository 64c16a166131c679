"""Findings of traces built by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from deepscope.analysis.build import build_profile
from deepscope.analysis.verdict import judge
from deepscope.records import Finding
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder

Findings = Callable[..., list[Finding]]


@pytest.fixture
def findings_of(tmp_path: Path) -> Findings:
    """The findings of a builder's trace with some code: `findings_of(builder, "DS001", step=3)`."""

    def find(builder: TraceBuilder, code: str, step: int | None = None) -> list[Finding]:
        profile = build_profile(read_trace(builder.write(tmp_path / "built.json")), step=step)
        judge(profile, None)
        return [one for one in profile.findings if one.code == code]

    return find
