"""What several rules ask of an analysis, worked out once and only when asked."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from deepscope.analysis.algebra.intervals import Intervals
from deepscope.analysis.algebra.selection import Mask, by_line
from deepscope.analysis.analysis import Analysis
from deepscope.analysis.findings.gaps import Gaps, find_gaps
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.waits_by_cause import CausedWaits, caused_waits
from deepscope.analysis.numbers.idle import Timeline, timeline
from deepscope.analysis.numbers.phases import PHASES
from deepscope.analysis.numbers.recording_cost import recorded_ns
from deepscope.records import Edit, Evidence, Finding, Remedy, Severity
from deepscope.trace.arrays import distinct_values
from deepscope.trace.model import Int64, Kind

__all__ = ["Facts", "severity_of"]


_SEVERITIES: tuple[tuple[float, Severity], ...] = ((0.1, "warning"), (0.02, "info"))
"""Shares of the wall time that would be saved."""


def severity_of(saving_ns: int, wall_ns: int) -> Severity:
    """How much a saving weighs: a tenth of the wall time is a warning, less than a fiftieth a hint."""
    share = saving_ns / wall_ns if wall_ns else 0.0
    return next((severity for limit, severity in _SEVERITIES if share >= limit), "hint")


class Facts:
    """An analysis, with the questions of the rules."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.attribution = analysis.attribution
        self.lines = len(self.attribution.scopes.locations)
        self.wall_ns = analysis.window.total_ns
        self.steps = int(analysis.extent.holds(self.attribution.steps.spans.start).sum())
        """Steps within the extent, 0 where none are marked."""
        self.has_device = self.attribution.work.metric == "device"

    def finding(
        self,
        rule: Rule,
        *,
        location: int,
        message: str,
        evidence: Evidence,
        saving_ns: int,
        remedy: str,
        edits: Iterable[Edit] = (),
    ) -> Finding:
        """A place where a rule holds.

        Args:
            rule: the rule.
            location: index into `Scopes.locations`; -1 where no line is known.
            message: what is wrong.
            evidence: figures by name: `…_ns` and `…_bytes` over the whole extent, means in `…_us`. Integers are counts
                or sums, which add up over ranks; fractions are not.
            saving_ns: at most so much time less over the whole extent; how it is estimated stands in the rule's page.
                Work that runs on after the window cannot save more than the window.
            remedy: what to do.
            edits: what a machine can do, all together or none.
        """
        place = self.attribution.scopes.locations[location] if location >= 0 else None
        saving_ns = min(saving_ns, self.wall_ns)
        return Finding(
            code=rule.code,
            title=rule.title,
            severity=severity_of(saving_ns, self.wall_ns),
            file=place.file if place else "",
            line=place.line if place else 0,
            function=place.function if place else "",
            message=message,
            evidence=evidence,
            saving_ns=saving_ns,
            remedy=Remedy(remedy, list(edits)),
            doc=f"docs/findings/{rule.code}.md",
        )

    def per_step(self, count: float) -> float:
        """Of one step, to one decimal; without steps of the whole."""
        return round(count / max(self.steps, 1), 1)

    @cached_property
    def devices(self) -> int:
        """How many devices do work in the trace, at least 1."""
        return max(len(self.attribution.busy), 1)

    @cached_property
    def all_waits(self) -> CausedWaits:
        """The waits of the training thread in the whole trace."""
        return caused_waits(self.attribution)

    @cached_property
    def waits(self) -> CausedWaits:
        """Those that begin within the window."""
        return self.all_waits.choose(self.analysis.window.locate(self.all_waits.start) >= 0)

    @cached_property
    def gaps(self) -> Gaps:
        """The device's idle time by cause."""
        return find_gaps(self.attribution, self.analysis.phases, self.analysis.window, self.waits)

    @cached_property
    def timeline(self) -> Timeline:
        """The line of the training thread at each instant of the window."""
        return self.analysis.timeline or timeline(self.attribution, self.analysis.window)

    @cached_property
    def loading(self) -> Intervals:
        """When the training thread was loading data, within the window."""
        phases = self.analysis.phases
        chosen = phases.phase == PHASES.index("data")
        return Intervals(phases.spans.start[chosen], phases.spans.end[chosen]).intersection(self.analysis.window)

    def by_line_of_cpu(self, stretches: Intervals) -> Int64:
        """Stretches of time by the line that the training thread was on, less what recording it cost; (lines + 1,)."""
        line = self.timeline
        spent = by_line(line.location, self.lines, stretches.overlap_ns(line.start, line.end))
        return np.asarray(np.maximum(spent - recorded_ns(self.attribution, stretches), 0))

    def recurs(self, location: Int64, ts: Int64) -> Mask:
        """At which lines something happens again and again in the whole trace; shape (lines + 1,).

        That is in at least half of the steps; where fewer than two are marked, before and after some kernel in the
        window. What happens once, while a model is set up or a recording ends, is nobody's bottleneck.

        Args:
            location: the line of each happening in the whole trace, -1 for none; shape (k,).
            ts: its time; shape (k,).
        """
        steps = self.attribution.steps
        if len(steps) > 1:
            turn, enough = steps.of(ts), max(-(-len(steps) // 2), 2)
        else:
            inside = self.analysis.window.locate(ts) >= 0
            turn, enough = np.where(inside, np.searchsorted(self._launches, ts), -1), 2
        known = turn >= 0
        width = int(turn.max(initial=0)) + 1
        pairs = distinct_values((location[known] + 1) * width + turn[known])
        return by_line(pairs // width - 1, self.lines) >= enough

    @cached_property
    def _launches(self) -> Int64:
        work = self.attribution.work
        return np.sort(work.launch_ns[work.kind == Kind.KERNEL])
