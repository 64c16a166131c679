"""What several rules ask of an analysis, worked out once and only when asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.intervals import Intervals, union
from deepscope.analysis.array_ops.selection import Mask, by_line, mask_of, named, of_kind
from deepscope.analysis.findings.recognised_calls import (
    Clipping,
    anomaly_checks,
    convolution_searches,
    find_clipping,
)
from deepscope.analysis.findings.source_text import SourceLine, SourceTexts
from deepscope.analysis.findings.waits_by_cause import (
    TURNAROUND_NS,
    CausedWaits,
    IdleGaps,
    WaitCause,
    caused_waits,
    find_gaps,
)
from deepscope.analysis.numbers.work import HostTimeline, timeline
from deepscope.analysis.tables.counters import Level, levels
from deepscope.records import Evidence
from deepscope.records.source_files import base_name
from deepscope.trace.arrays import distinct_values, nearest_to, pick
from deepscope.trace.format.audit import FORMAT, AuditAccount
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64
from deepscope.trace.names import is_backward_root

Answer = TypeVar("Answer")


class Facts:
    """An analysis, with the questions of the rules."""

    def __init__(self, analysis: Analysis, serving_steps: int) -> None:
        self.analysis = analysis
        self.attribution = analysis.attribution
        self.trace = self.attribution.trace
        self.work = self.attribution.work
        self.locations = self.attribution.scopes.locations
        self.lines = len(self.locations)
        self.wall_ns = analysis.unrecorded.total_ns
        marked = int(analysis.extent.holds(self.attribution.training.steps.spans.start).sum())
        self.steps = marked or serving_steps
        """Steps within the extent, where none are marked those of a server of models; 0 without either."""
        self.has_device = self.work.metric == "device"
        self.texts = SourceTexts(self.trace)
        self._answers: dict[Callable[[Facts], Any], Any] = {}

    def once(self, ask: Callable[[Facts], Answer]) -> Answer:
        """What a rule asks of these facts: worked out when it is first asked, and kept for the others."""
        if ask not in self._answers:
            self._answers[ask] = ask(self)
        answer: Answer = self._answers[ask]
        return answer

    def source(self, line: int) -> SourceLine:
        """The text of a line, by its index into `locations`."""
        return self.texts.at(self.locations[line])

    @cached_property
    def audit(self) -> AuditAccount:
        """The account of the audit; an empty one where nothing was looked at, or a later version wrote it."""
        found = self.trace.header.audit
        return found if found is not None and found.format == FORMAT else AuditAccount()

    def audited_line(self, place: int) -> int:
        """The line of a place of the audit, an index into `locations`; -1 if the trace does not know it."""
        return self._audited_lines[place] if 0 <= place < len(self._audited_lines) else -1

    @cached_property
    def _audited_lines(self) -> list[int]:
        index: dict[tuple[str, int], int] = {}
        for number, one in enumerate(self.locations):
            index.setdefault((one.file, one.line), number)
        path_of = self.trace.header.path_of
        return [index.get((path_of(one.file), one.line), -1) for one in self.audit.places]

    def audited_place_text(self, place: int) -> str:
        """`train.py:41` for a place of the audit; "" for one that is not known."""
        places = self.audit.places
        if not 0 <= place < len(places):
            return ""
        return f"{base_name(self.trace.header.path_of(places[place].file))}:{places[place].line}"

    def per_step(self, count: float) -> float:
        """The count in one step, to one decimal; in the whole where there are no steps."""
        return round(count / max(self.steps, 1), 1)

    def counted(self, name: str, count: int) -> Evidence:
        """The figures of a count: in the whole and in one step."""
        return {name: count, f"{name}_per_step": self.per_step(count)}

    @cached_property
    def wall_with_cores_ns(self) -> int:
        """The wall time without the part in which the program could run and had no core, where that is known: a busy
        machine draws out the whole, and not the CPU time of a line."""
        machine = self.trace.header.machine
        return round(self.wall_ns * (1 - ((machine.core_wait_ratio if machine is not None else None) or 0)))

    @cached_property
    def usable_cores(self) -> int:
        """How many cores the program may use: the machine's, those it is bound to, its quota; 0 if none is known."""
        machine, counters = self.trace.header.machine, self.trace.header.counters
        known = [machine.cores, machine.allowed_cores, machine.quota_cores] if machine is not None else []
        known += [counters.cores, counters.container.cpus] if counters is not None else []
        return max(int(min(count for count in known if count)), 1) if any(known) else 0

    @cached_property
    def free_cores(self) -> int:
        """Of these, how many other processes leave it, at least 1."""
        machine = self.trace.header.machine
        cores, others = (machine.cores, machine.others_cores or 0.0) if machine is not None else (0, 0.0)
        return max(min(self.usable_cores, round(cores - others)), 1)

    @cached_property
    def devices(self) -> int:
        """How many devices do work in the trace, at least 1."""
        return max(len(self.work.busy), 1)

    @cached_property
    def idle_ns(self) -> float:
        """How long a device had nothing to do in the window, the mean of all."""
        window = self.analysis.window
        return sum(one.complement(window).total_ns for one in self.work.busy.values()) / self.devices

    @cached_property
    def backward_nodes(self) -> Int64:
        """The spans (events, ascending) in which autograd's engine evaluates a node."""
        return np.flatnonzero(named(self.trace, of_kind(self.trace, Kind.OPERATOR), is_backward_root))

    @cached_property
    def anomaly_checks(self) -> Int64:
        """The operators (events, ascending) by which autograd looks for NaN in each gradient."""
        return anomaly_checks(self.trace, self.attribution.calls.parent)

    @cached_property
    def levels(self) -> dict[tuple[str, str], Level]:
        """DeepScope's own counters, by name and series."""
        return {(one.counter, one.series): one for one in levels(self.trace) if one.is_own}

    def samples(self, level: Level) -> int:
        """How often one of DeepScope's counters was read: a trace leaves out what did not change."""
        account = self.trace.header.counters
        return max(len(level.at_ns), account.samples if account is not None else 0)

    @cached_property
    def searches(self) -> Int64:
        """The convolutions (events, ascending) that try out algorithms."""
        return convolution_searches(self.trace, self.attribution.calls.parent)

    @cached_property
    def clipping(self) -> Clipping:
        """Where gradients are clipped."""
        return find_clipping(self.trace, self.texts, self.attribution.scopes, self.attribution.calls.parent)

    @cached_property
    def all_waits(self) -> CausedWaits:
        """The waits of the training thread in the whole trace."""
        waits, of = self.analysis.waits, self.attribution
        here = waits[self.trace.events.thread[waits] == of.training.thread]
        within = {
            WaitCause.CLIPPING: np.append(self.clipping.calls, self.clipping.reads),
            WaitCause.CHECK: self.anomaly_checks,
            WaitCause.SEARCH: self.searches,
        }
        return caused_waits(
            self.trace, of.operators, self.work, here, of.owners.location, parent=of.calls.parent, within=within
        )

    @cached_property
    def waits(self) -> CausedWaits:
        """The waits that begin within the window."""
        return self.all_waits.choose(self.analysis.window.locate(self.all_waits.start) >= 0)

    def most_of_device_ns(self, location: int) -> int:
        """What a step is shorter by at most if the work of a line is, over the whole extent.

        A step takes the CPU its time. Less work shortens what the CPU waits for the device, how far the device is
        behind at the end, and the launches of the line. Where no plain steps are known all of it may be: the recording
        itself has the CPU come later, and wait less.
        """
        if not self.has_device or self.trace.header.plain_steps is None:
            return self.wall_ns
        return (self._awaited_ns + int(self.gaps.launch[location])) // self.devices

    @cached_property
    def _awaited_ns(self) -> int:
        """How long the training thread waits for a device without the recording, and how far that is behind at the
        end."""
        waits, window, added = self.waits, self.analysis.window, self.analysis.added.busy
        idle = self.work.working.complement(window)
        real = self.analysis.unrecorded.overlap_ns(idle.start, idle.end) >= TURNAROUND_NS
        before = np.searchsorted(idle.start[real], waits.start, side="right") - 1
        first = window.start.min(initial=np.iinfo(np.int64).max)
        since = np.where(before >= 0, pick(idle.end[real], before), first)
        longer = added.overlap_ns(np.minimum(since, waits.start), waits.start)
        return int((waits.end - waits.start + longer).sum()) + self.analysis.behind_ns

    @cached_property
    def gaps(self) -> IdleGaps:
        """The device's idle time by cause."""
        searching = union(*(ends[self.searches] for ends in (self.trace.events.start_ns, self.trace.events.end_ns)))
        window = self.analysis.window
        clipping = nearest_to(self.work.node, self.attribution.calls.parent, self.clipping.loops) >= 0
        return find_gaps(
            self.work,
            self.analysis.phases,
            window,
            self.waits,
            self.lines,
            added=self.analysis.added,
            searching=searching,
            clipping=clipping,
        )

    @cached_property
    def timeline(self) -> HostTimeline:
        """The line of the training thread at each instant of the window."""
        of = self.attribution
        return self.analysis.timeline or timeline(self.trace.events, of.runs, of.training.thread, self.analysis.window)

    def in_phase(self, name: str) -> Intervals:
        """When the training thread was in one of `PHASES`, within the window."""
        return self.analysis.phases.spans_of(name).intersection(self.analysis.window)

    @cached_property
    def loading(self) -> Intervals:
        """When the training thread was loading data, within the window."""
        return self.in_phase("data")

    @cached_property
    def loading_ns(self) -> int:
        """How long that takes without the recording."""
        return self.loading.intersection(self.analysis.unrecorded).total_ns

    def by_line_of_cpu(self, stretches: Intervals) -> Int64:
        """Stretches of time by the training thread's line, less what recording added; shape (lines + 1,)."""
        line, stretches = self.timeline, stretches.intersection(self.analysis.unrecorded)
        return by_line(line.location, self.lines, stretches.overlap_ns(line.start, line.end))

    def recurs(self, location: Int64, ts: Int64) -> Mask:
        """At which lines something happens again and again in the whole trace; shape (lines + 1,).

        It recurs if it happens in at least half of the steps; with fewer than two steps, if it happens before and after
        some kernel in the window. What happens once, while a model is set up or a recording ends, is no bottleneck.

        Args:
            location: the line of each happening in the whole trace, -1 for none; shape (k,).
            ts: its time; shape (k,).
        """
        steps = self.attribution.training.steps
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
        return np.sort(self.work.launch_ns[self.work.counts & (self.work.kind == Kind.KERNEL)])

    def marked(self, events: Int64) -> Mask:
        """Which events are these; shape (n,)."""
        return mask_of(events, len(self.trace.events))

    def topmost(self, chosen: Mask) -> Int64:
        """The chosen events (ascending) that lie in no other chosen one on their thread."""
        parent = self.attribution.calls.parent
        events = np.flatnonzero(chosen)
        return np.asarray(events[nearest_to(pick(parent, events), parent, chosen) < 0])

    def operators_named(self, *names: str) -> Int64:
        """The operators (events, ascending) that bear one of these names and start within the extent."""
        found = np.flatnonzero(named(self.trace, of_kind(self.trace, Kind.OPERATOR), frozenset(names).__contains__))
        return np.asarray(found[self.analysis.extent.holds(self.trace.events.start_ns[found])])

    def cost_ns(self, events: Int64) -> Int64:
        """What each of some calls cost, none of which lies in another; shape of `events`, which are ascending.

        On the CPU that is its length, less what recording added to it; else the time of the device's work that it
        launched, divided by the number of devices.
        """
        trace, work = self.trace, self.work
        if not self.has_device:
            start, end = trace.events.start_ns[events], trace.events.end_ns[events]
            here = trace.events.thread[events] == self.attribution.training.thread
            added = self.analysis.added.idle.intersection(self.analysis.window).overlap_ns(start, end)
            return self.analysis.extent.clipped_ns(start, end) - np.where(here, added, 0)
        result = np.zeros(len(events), np.int64)
        if len(events):
            above = nearest_to(work.node, self.attribution.calls.parent, self.marked(events))
            launched = self.analysis.counted & (above >= 0)
            np.add.at(result, np.searchsorted(events, above[launched]), work.duration_ns[launched])
        return result // self.devices
