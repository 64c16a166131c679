"""A small machine that runs random programs, and its critical path in plain Python, straight from the definitions.

The machine knows what each piece of work and each call waited for; the trace that it writes has to tell that.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from trace_builder import BACKWARD, MAIN, TraceBuilder

__all__ = ["Machine", "Truth", "run_program"]

FILE = "/home/me/train.py"
STREAMS = (7, 8, 9)
KERNELS = (("gemm", "kernel_ns"), ("ncclKernel_AllReduce", "communication_ns"), ("Memcpy DtoD", "copy_ns"))
Segment = tuple[int, int, str, int | None, Any]
"""Start, end, kind and line of a stretch of the path, and whose it is: a piece's, a join's or a thread's."""


@dataclass(eq=False)
class Piece:
    stream: int
    launch: int
    thread: int
    start: int
    end: int
    line: int | None
    kind: str
    before: Piece | None
    other: Piece | None

    @property
    def behind(self) -> tuple[str, int]:
        """What it started behind, and when that was there."""
        found = [("launch", self.launch)]
        if self.other is not None and self.other.end >= found[0][1]:
            found.insert(0, ("other", self.other.end))
        if self.before is not None and self.before.end >= found[0][1]:
            found.insert(0, ("before", self.before.end))
        return found[0]


@dataclass(eq=False)
class Join:
    thread: int
    since: int
    at: int
    line: int | None
    sources: list[Piece] = field(default_factory=list)
    other: int | None = None

    @property
    def last(self) -> Piece:
        return max(self.sources, key=lambda piece: (piece.end, -piece.stream))

    @property
    def waited(self) -> bool:
        return self.other is not None or self.last.end > self.since


class Machine:
    """Runs instructions on the clock of two threads and several streams, and writes down what happens."""

    def __init__(self, without: int | None = None, waited: Iterator[bool] | None = None) -> None:
        """Without a line, whose instructions take no time, it is told which calls `waited` when the line was there."""
        self.builder = TraceBuilder()
        self._without, self._waited = without, waited
        self.waited: list[bool] = []
        self.pieces: list[Piece] = []
        self.joins: list[Join] = []
        self.on: dict[int, list[tuple[int, int, int | None]]] = {MAIN: [], BACKWARD: []}
        """By thread, the lines that it was on."""
        self.steps: list[tuple[int, int]] = []
        self.now = 0
        self.thread = MAIN
        self._waits: dict[int, list[Piece]] = defaultdict(list)
        self._recorded: list[tuple[int, int, int, Piece | None]] = []

    def took(self, line: int | None, duration: int) -> int:
        """How long an instruction takes."""
        return 0 if line is not None and line == self._without else duration

    def last_on(self, stream: int) -> Piece | None:
        return next((piece for piece in reversed(self.pieces) if piece.stream == stream), None)

    def scope(self, line: int | None, start: int) -> None:
        """From `start` to now the thread was on a line."""
        self.on[self.thread].append((start, self.now, line))
        if line is not None and self.thread == MAIN:
            self.builder.line(FILE, line, "f", start, self.now - start)

    def compute(self, line: int | None, duration: int) -> None:
        start = self.now
        self.now += self.took(line, duration)
        self.scope(line, start)

    def launch(self, line: int | None, stream: int, what: int, duration: int, delay: int, call: int) -> None:
        start, before = self.now, self.last_on(stream)
        duration, call = self.took(line, duration), self.took(line, call)
        waits = self._waits.pop(stream, [])
        other = max(waits, key=lambda piece: (piece.end, piece.stream, piece.start), default=None)
        name, kind = KERNELS[what]
        ready = max(start, before.end if before else 0, other.end if other else 0)
        category = "gpu_memcpy" if kind == "copy_ns" else "kernel"
        begin = max(ready + delay, start + call + 1) if kind == "copy_ns" else ready + delay  # its call does not wait
        self.builder.kernel(name, start, begin, duration, launch_duration=call, tid=self.thread, stream=stream,
                            category=category)  # fmt: skip
        end = begin + duration
        self.pieces.append(Piece(stream, start, self.thread, begin, end, line, kind, before, other))
        self.now += call
        self.scope(line, start)

    def synchronise(self, line: int | None, stream: int | None, latency: int) -> None:
        """Of a stream, or of all of them."""
        start = self.now
        lasts = [self.last_on(one) for one in ((stream,) if stream is not None else STREAMS)]
        sources = [piece for piece in lasts if piece is not None]
        ready = max([start, *(piece.end for piece in sources)])
        self.waited.append(ready > start)
        # What a call takes to return is no work of its own where it waited.
        waited = next(self._waited) if self._waited is not None else ready > start
        own = 0 if waited and latency == 0 else self.took(line, max(latency, 1))
        self.now = ready + own if self._waited is None else max(ready, start + own)
        name = "cudaDeviceSynchronize" if stream is None else "cudaStreamSynchronize"
        self.builder.runtime(name, start, self.now - start, tid=self.thread)
        if stream is not None:
            number = self.builder.events[-1]["args"]["correlation"]
            self.builder.event("cuda_sync", "Stream Sync", start, self.now - start, pid=0, tid=stream, device=0,
                               stream=stream, correlation=number)  # fmt: skip
        if sources:
            self.joins.append(Join(self.thread, start, self.now, line, sources))
        self.scope(line, start)

    def record(self, line: int | None, stream: int) -> None:
        start = self.now
        self.now += self.took(line, 1)
        self.builder.runtime("cudaEventRecord", start, 1, tid=self.thread)
        number = self.builder.events[-1]["args"]["correlation"]
        self._recorded.append((stream, number, start, self.last_on(stream)))
        self.scope(line, start)

    def wait(self, line: int | None, stream: int, which: int) -> None:
        """A stream waits for an event that was recorded on another one."""
        if not self._recorded:
            return
        other, number, _, piece = self._recorded[which % len(self._recorded)]
        start = self.now
        self.now += self.took(line, 1)
        self.builder.runtime("cudaStreamWaitEvent", start, 1, tid=self.thread)
        own = self.builder.events[-1]["args"]["correlation"]
        self.builder.event("cuda_sync", "Stream Wait Event", start, 1, pid=0, tid=stream, device=0, stream=stream,
                           correlation=own, wait_on_stream=other, wait_on_cuda_event_record_corr_id=number)  # fmt: skip
        if piece is not None and other != stream:
            self._waits[stream].append(piece)
        self.scope(line, start)

    def begin_backward(self, line: int) -> None:
        """Autograd's thread goes on with spans that belong to the line of `backward()`."""
        self._called = line, self.now
        self.now += self.took(line, 1)
        self.on[MAIN].append((self._called[1], self.now, line))
        self.joins.append(Join(BACKWARD, self.now, self.now, None, other=MAIN))
        self.thread = BACKWARD

    def span(self, start: int) -> None:
        self.builder.op("autograd::engine::evaluate_function: AccumulateGrad", start, self.now - start, tid=BACKWARD)

    def end_backward(self) -> None:
        line, begun = self._called
        self.joins.append(Join(MAIN, begun + 1, self.now, None, other=BACKWARD))
        self.thread = MAIN
        end = self.now + self.took(line, 1)
        self.on[MAIN].append((self.now, end, line))
        self.builder.line(FILE, line, "f", begun, end - begun)
        self.now = end

    def end_step(self) -> None:
        begin = self.steps[-1][1] if self.steps else 0
        if self.now > begin or self._waited is not None:
            self.steps.append((begin, self.now))
            self.builder.step(len(self.steps), begin, self.now - begin)


def run_program(seed: int, *, synchronised: bool = False, without: int | None = None) -> Machine:
    """A random program.

    If `synchronised`, each step ends with the device, and nothing is delayed. Then it can be run `without` a line.
    """
    dice, machine = random.Random(seed), Machine()
    if without is not None:
        machine = Machine(without, iter(run_program(seed, synchronised=synchronised).waited))
    delays = (0,) if synchronised else (0, 1, 3)

    def instruction(line: int | None) -> None:
        choice = dice.random()
        if choice < 0.2:
            machine.compute(line, dice.randrange(1, 15))
        elif choice < 0.6:
            kind = dice.randrange(2 if synchronised else 3)
            lengths = dice.choice((2, 9, 40)), dice.choice(delays), dice.randrange(1, 5)
            machine.launch(line, dice.choice(STREAMS), kind, *lengths)
        elif choice < 0.72:
            machine.record(line, dice.choice(STREAMS))
        elif choice < 0.92:
            machine.wait(line, dice.choice(STREAMS), -dice.randrange(3))
        else:
            machine.synchronise(line, dice.choice((*STREAMS, None)), 0 if synchronised else dice.choice((1, 2)))

    for _ in range(3):
        for _ in range(dice.randrange(2, 14)):
            if dice.random() < 0.12:
                line = dice.randrange(1, 6)
                machine.begin_backward(line)
                machine.compute(line, 1)
                machine.span(machine.now - 1)
                for _ in range(dice.randrange(4)):
                    begun = machine.now
                    instruction(line)
                    if machine.now > begun:
                        machine.span(begun)
                machine.end_backward()
            else:
                instruction(dice.choice((1, 2, 3, 4, 5, None)))
        if synchronised:
            machine.synchronise(6, None, 0)
            machine.compute(6, 1)
        machine.end_step()
    return machine


class Truth:
    """The path of what a machine ran, and what a step would be without a line."""

    def __init__(self, machine: Machine) -> None:
        self._of = machine
        self.visited: dict[int, int | Piece] = {}
        """By instant, where the path goes on from it."""
        self.path = self._walk()

    def line_at(self, thread: int, ts: int) -> int | None:
        """The line that a thread is on; autograd's is on that of the training thread where it has none."""
        for start, end, line in self._of.on[thread]:
            if start <= ts < end:
                return line
        return None

    def join_before(self, thread: int, ts: int, *, waited: bool = False) -> Join | None:
        """The last join of a thread at or before an instant."""
        found = [join for join in self._of.joins if join.thread == thread and join.at <= ts]
        found = [join for join in found if join.waited or not waited]
        return found[-1] if found else None

    def _walk(self) -> list[Segment]:
        machine = self._of
        end = machine.steps[-1][1]
        ended = max((piece for piece in machine.pieces), key=lambda piece: (piece.end, piece.stream), default=None)
        at: tuple[int | Piece, int] = (MAIN, end) if ended is None or ended.end <= end else (ended, ended.end)
        path: list[Segment] = []
        while at[1] > 0:
            self.visited.setdefault(at[1], at[0])
            where, now = at
            if isinstance(where, Piece):
                path.append((where.start, now, where.kind, where.line, where))
                why, ready = where.behind
                path.append((ready, where.start, "launch_ns" if why == "launch" else "gap_ns", where.line, where))
                places = {"launch": where.thread, "before": where.before, "other": where.other}
                at = places[why], ready
                continue
            join = self.join_before(where, now, waited=True)
            begin = join.at if join else 0
            path += [(ts, ts + 1, "cpu_ns", self.line_at(where, ts), where) for ts in range(now - 1, begin - 1, -1)]
            self.visited.setdefault(begin, where)
            if join is None:
                break
            if join.other is not None:
                # Towards the other thread no time passes; what it joins at the same instant lies further back.
                at = join.other, begin
                if join.thread == BACKWARD:
                    at = MAIN, begin
                continue
            path.append((join.last.end, begin, "return_ns", join.line, join))
            at = join.last, join.last.end
        return path[::-1]

    def within(self, start: int, end: int) -> list[Segment]:
        """The path of a step."""
        found = [(max(a, start), min(b, end), *rest) for a, b, *rest in self.path]
        return [one for one in found if one[0] < one[1]]

    def by_line(self) -> dict[int | None, dict[str, int]]:
        """Time on the path of all steps, by line and kind."""
        result: dict[int | None, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for span in self._of.steps:
            for start, end, kind, line, _ in self.within(*span):
                result[line][kind] += end - start
        return result

    def shorter_ns(self, line: int) -> int:
        """By how much all steps together would be shorter without a line."""
        return sum(end - self.ended(start, end, line) for start, end in self._of.steps)

    def ended(self, begin: int, end: int, line: int | None) -> int:
        """When a step would end without a line: the longest path to where it ended, node by node."""

        def weight(own: int | None, ns: int) -> int:
            return 0 if own == line and line is not None else ns

        def elapsed(thread: int, since: int, until: int) -> int:
            return sum(weight(self.line_at(thread, ts), 1) for ts in range(since, until))

        @cache
        def reaches(thread: int, ts: int) -> int:
            if ts <= begin:
                return begin
            join = self.join_before(thread, ts)
            if join is None or join.at <= begin:
                return begin + elapsed(thread, begin, ts)
            return joins(join) + elapsed(thread, join.at, ts)

        def before_join(thread: int, ts: int, join: Join) -> int:
            """As `reaches`, but for a join at that very instant."""
            earlier = [one for one in self._of.joins[: self._of.joins.index(join)] if one.thread == thread]
            earlier = [one for one in earlier if begin < one.at <= ts]
            if ts <= begin:
                return begin
            if not earlier:
                return begin + elapsed(thread, begin, ts)
            return joins(earlier[-1]) + elapsed(thread, earlier[-1].at, ts)

        @cache
        def joins(join: Join) -> int:
            if join.other is not None:
                return before_join(join.other, join.at, join)
            since, last = max(join.since, begin), join.last.end
            found = [before_join(join.thread, since, join)]
            latency = weight(join.line, join.at - max(last, begin)) if join.waited else 0
            if not join.waited:
                found[0] += elapsed(join.thread, since, join.at)
            elif last <= begin:
                found.append(begin + latency)
            found += [ends(piece) + latency for piece in join.sources if piece.end > begin]
            return max(found)

        @cache
        def starts(piece: Piece) -> int:
            if piece.start < begin:
                return begin
            why, ready = piece.behind
            delay = weight(piece.line, piece.start - max(ready, begin))
            found = [begin + (delay if ready <= begin else 0)]
            if piece.launch > begin:
                found.append(reaches(piece.thread, piece.launch) + (delay if why == "launch" else 0))
            for name, source in (("before", piece.before), ("other", piece.other)):
                if source is not None and source.end > begin:
                    found.append(ends(source) + (delay if why == name else 0))
            return max(found)

        @cache
        def ends(piece: Piece) -> int:
            return starts(piece) + weight(piece.line, piece.end - max(piece.start, begin))

        if end in self.visited:
            at = self.visited[end]
            return ends(at) if isinstance(at, Piece) else reaches(at, end)
        *_, kind, _, where = self.within(begin, end)[-1]
        if kind == "cpu_ns":
            return reaches(where, end)
        source: Piece | None
        if kind == "return_ns":
            source, ready = where.last, where.last.end
        elif kind in {"launch_ns", "gap_ns"}:
            why, ready = where.behind
            source = {"before": where.before, "other": where.other, "launch": None}[why]
        else:
            return starts(where) + weight(where.line, end - max(where.start, begin))
        rest = weight(where.line, end - max(ready, begin))
        if ready <= begin:
            return begin + rest
        return rest + (reaches(where.thread, ready) if source is None else ends(source))
