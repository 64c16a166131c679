"""The phases of training."""

from __future__ import annotations

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.selection import by_line
from deepscope.analysis.numbers.phases import phase_of_work
from deepscope.records import PHASES, Phase


def phase_table(analysis: Analysis) -> list[Phase]:
    """The phases that hold any time, in the order of a step."""
    work = analysis.attribution.work
    wall = analysis.phases.wall_ns(analysis.window).tolist()
    calls = analysis.phases.calls(analysis.extent).tolist()
    phase = phase_of_work(work, analysis.phases)[analysis.counted]
    device = by_line(phase, len(PHASES), work.duration_ns[analysis.counted]).tolist()
    return [
        Phase(name=name, wall_ns=wall[i], device_ns=device[i], calls=calls[i])
        for i, name in enumerate(PHASES)
        if wall[i] or device[i]
    ]
