"""Random traces of everything at once: nested lines, operators, launches, waits, memory, threads and devices."""

from __future__ import annotations

import random
from itertools import pairwise

from trace_builder import TraceBuilder

__all__ = ["random_trace"]

FILE = "/home/me/train.py"
LIBRARY = "/env/lib/python3.13/site-packages/lib/blocks.py"
END = 20_000
MAIN, OTHER, ENGINE = "main", "other", "engine"
NUMBERS = {MAIN: 1, OTHER: 2}
"""`Fwd thread id` of each thread that runs a forward pass."""


class _Random:
    def __init__(self, seed: int, libraries: bool) -> None:
        self.dice = random.Random(seed)
        self.libraries = libraries
        self.builder = TraceBuilder()
        self.sequence = {MAIN: 0, OTHER: 0}
        self.forward: list[tuple[str, int, int]] = []
        """Thread, sequence number and start of every operator that autograd knows."""

    def segments(self, start: int, end: int) -> list[tuple[int, int]]:
        """Disjoint stretches in order, some touching and some empty."""
        cuts = sorted(self.dice.randint(start, end) for _ in range(2 * self.dice.randrange(5)))
        if self.dice.random() < 0.3:  # gapless, as the lines of a body are
            return list(pairwise(cuts))
        return list(zip(cuts[::2], cuts[1::2], strict=False))

    def fill(self, tid: str, start: int, end: int, depth: int, *, lined: bool = False) -> None:
        """What runs on a thread between two instants; `lined` says that a line is open around it."""
        if depth > 5:
            return
        bodies = []
        for first, last in self.segments(start, end):
            kinds = [self.line] * 5 + [self.operator] * 3 + [self.launch] * 3 + [self.other] * 2
            make = self.dice.choice(kinds + [self.library_line] * 5 * self.libraries)
            if lined and self.forward and self.dice.random() < 0.1:
                self.root(tid, first, last, depth)
            else:
                body = make(tid, first, last, depth, lined=lined)
                bodies.append((first, *body, last) if body else None)
        lines = [body for body in bodies if body is not None]
        if len(lines) > 1 and self.dice.random() < 0.5:
            self.crossing(tid, *sorted(self.dice.sample(lines, 2)))

    def crossing(self, tid: str, first: tuple[int, ...], last: tuple[int, ...]) -> None:
        """An annotation that begins in one line's scope and ends in another's."""
        begin, end = self.dice.randint(first[2], first[3]), self.dice.randint(last[0], last[1])
        if first[2] < begin < first[3] and last[0] < end < last[1]:
            self.builder.annotation(self.dice.choice(["region", "data"]), begin, end - begin, tid=tid)

    def line(self, tid: str, start: int, end: int, depth: int, *, lined: bool) -> tuple[int, int]:
        """Returns the part that is filled."""
        inner = sorted((self.dice.randint(start, end), self.dice.randint(start, end)))
        line = self.dice.randrange(1, 9)
        self.builder.line(FILE, line, "f", start, end - start, tid=tid)
        self.fill(tid, inner[0], inner[1], depth + 1, lined=lined or end > start)
        return inner[0], inner[1]

    def library_line(self, tid: str, start: int, end: int, depth: int, *, lined: bool) -> tuple[int, int]:
        """The same of a library's line."""
        inner = sorted((self.dice.randint(start, end), self.dice.randint(start, end)))
        self.builder.line(LIBRARY, self.dice.randrange(1, 9), "g", start, end - start, tid=tid, library=True)
        self.fill(tid, inner[0], inner[1], depth + 1, lined=lined)
        return inner[0], inner[1]

    def operator(self, tid: str, start: int, end: int, depth: int, *, lined: bool) -> None:
        sequence = None
        if tid in NUMBERS and self.dice.random() < 0.7:
            self.sequence[tid] += self.dice.randrange(2)  # several carry the same number
            sequence = self.sequence[tid]
            self.forward.append((tid, sequence, start))
        name = self.dice.choice(["aten::mm", "aten::add", "aten::_local_scalar_dense"])
        self.builder.op(name, start, end - start, tid=tid, sequence=sequence)
        self.fill(tid, start, end, depth + 1, lined=lined)

    def launch(self, tid: str, start: int, end: int, depth: int, *, lined: bool) -> None:
        work = self.dice.randint(start, END)
        where = {"tid": tid, "launch_duration": end - start, "device": self.dice.randrange(2),
                 "stream": self.dice.choice([7, 8])}  # fmt: skip
        if self.dice.random() < 0.3:
            direction = self.dice.choice(["HtoD", "DtoH", "DtoD"])
            self.builder.memcpy(direction, self.dice.randrange(99), start, work, self.dice.randrange(300), **where)
        else:
            name = self.dice.choice(["gemm", "add", "ncclKernel_AllReduce"])
            self.builder.kernel(name, start, work, self.dice.randrange(900), **where)

    def other(self, tid: str, start: int, end: int, depth: int, *, lined: bool) -> None:
        kind = self.dice.randrange(4)
        if kind == 0:
            name = self.dice.choice(["cudaStreamSynchronize", "cudaMemcpy", "cudaEventQuery"])
            self.builder.runtime(name, start, end - start, tid=tid)
        elif kind == 1:
            size = self.dice.choice([64, 128, -64])
            where = {"device_type": self.dice.choice([0, 1, 1]), "device": self.dice.randrange(2)}
            self.builder.memory(start, size, address=self.dice.randrange(6), tid=tid, **where)
        elif kind == 2:
            self.builder.module("Linear", "fc", start, end - start, tid=tid)
            self.fill(tid, start, end, depth + 1, lined=lined)
        else:
            self.builder.annotation("inside", start, end - start, tid=tid)
            self.fill(tid, start, end, depth + 1, lined=lined)

    def root(self, tid: str, start: int, end: int, depth: int) -> None:
        """A span of autograd's engine, with the node in it unless the node has no number."""
        earlier = [one for one in self.forward if one[2] < start and one[0] in (tid, MAIN, OTHER)]
        if end - start < 6 or not earlier:
            return
        if self.dice.random() < 0.2:
            self.builder.op("autograd::engine::evaluate_function: AccumulateGrad", start, end - start, tid=tid)
        else:
            thread, sequence, _ = self.dice.choice(earlier)
            partners = [one for one in earlier if one[0] == thread and one[1] <= sequence]
            at = max(partners, key=lambda one: (one[1], one[2]))[2]
            self.builder.backward("MmBackward0", start, end - start, sequence, tid=tid, fwd_thread=NUMBERS[thread])
            self.builder.flow(at, start, tid=thread, backward_tid=tid)
        self.fill(tid, start + 2, end - 2, depth + 1)

    def build(self) -> TraceBuilder:
        self.builder.step(1, 0, 6_000, tid=MAIN).step(2, 6_000, 8_000, tid=MAIN).step(3, 15_000, 4_500, tid=MAIN)
        for tid in (OTHER, MAIN):
            for start in range(0, END, END // 4):
                self.line(tid, start + self.dice.randrange(500), start + END // 4, 0, lined=False)
        cuts = sorted(self.dice.randint(END // 2, END) for _ in range(12))
        for start, end in zip(cuts[::2], cuts[1::2], strict=True):
            self.root(ENGINE, start, end, 1)
        if not any(event.get("cat") == "kernel" for event in self.builder.events):
            self.builder.kernel("gemm", 1, 20, 50, tid=MAIN, launch_duration=0)
        return self.builder


def random_trace(seed: int, *, libraries: bool = False) -> TraceBuilder:
    """A trace with two devices, two threads that run forward passes, and one of autograd's; the same for one seed.

    With `libraries` lines of a library run in it, too.
    """
    return _Random(seed, libraries).build()
