"""A recording on a real device, and what the file itself says about it, read without DeepScope's reader.

The truth that the GPU checks compare with comes from the trace file alone: device work, its launch by correlation, and
the operators and annotations that enclose the launch in time. Which line ran an operator is known by construction: the
checked code marks its lines with comments such as `# @matmul`.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import deepscope
from deepscope.records import Line, Profile

_WORK = {"kernel", "gpu_memcpy", "gpu_memset"}
_LAUNCH = {"cuda_runtime", "cuda_driver"}
_AROUND = {"cpu_op", "user_annotation"}


@dataclass(frozen=True)
class Span:
    """One complete event of the file, in integer nanoseconds."""

    name: str
    category: str
    thread: tuple[Any, Any]
    start_ns: int
    end_ns: int
    args: dict[str, Any]

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns

    def encloses(self, other: Span) -> bool:
        return self.thread == other.thread and self.start_ns <= other.start_ns and other.end_ns <= self.end_ns


class Recorded:
    """The profile of one recording beside the events of its file."""

    def __init__(self, profile: Profile, trace: Path, code: Path) -> None:
        self.profile = profile
        self.trace = trace
        self._code = code
        opener = gzip.open if trace.suffix == ".gz" else open
        with opener(trace, "rb") as file:
            self.content: dict[str, Any] = json.load(file, parse_float=Decimal)
        self.spans = [_span(event) for event in self.content["traceEvents"] if event.get("ph") == "X"]

    @cached_property
    def work(self) -> list[Span]:
        """All device work: kernels, copies, fills."""
        return [span for span in self.spans if span.category in _WORK]

    @cached_property
    def _around(self) -> dict[int, list[str]]:
        """Correlation → names of the operators and annotations that enclose the launch."""
        around = [span for span in self.spans if span.category in _AROUND]
        launches = [span for span in self.spans if span.category in _LAUNCH and "correlation" in span.args]
        return {
            launch.args["correlation"]: [span.name for span in around if span.encloses(launch)] for launch in launches
        }

    def work_under(self, *names: str) -> list[Span]:
        """Device work launched inside an operator or annotation of one of these names."""
        wanted = set(names)
        return [span for span in self.work if wanted & set(self._around.get(span.args.get("correlation", -1), []))]

    def called(self, *names: str) -> list[Span]:
        """Events on the CPU (operators, calls of the runtime) with one of these names."""
        return [span for span in self.spans if span.name in names and span.category not in _WORK]

    def at(self, mark: str) -> Line:
        """The profile's numbers of the line that carries the comment `# @mark`; zeros where it has none."""
        number = line_of(self._code, mark)
        for line in self.profile.lines:
            if Path(line.file) == self._code and line.line == number:
                return line
        return Line(file=str(self._code), line=number, function="", exact=False)

    def describe_lines(self) -> str:
        """Where device time was put, for the message of a failed check."""
        rows = [
            f"{Path(at.file).name}:{at.line} {at.self_device_ns} ns" for at in self.profile.lines if at.self_device_ns
        ]
        return f"{rows}, no line: {self.profile.no_line.self_device_ns} ns"

    def check_conservation(self) -> None:
        """What lies at the lines and at none is all there is, to the nanosecond."""
        profile = self.profile
        assert profile.metric == "device"
        total = sum(span.duration_ns for span in self.work)
        assert total > 0, "nothing ran on the device"
        assert _sum(profile, "self_device_ns") == total == profile.totals.device_ns
        assert _sum(profile, "idle_ns") == profile.totals.idle_ns
        assert _sum(profile, "launches") == profile.totals.launches
        assert all(
            0 <= line.backward_device_ns <= line.self_device_ns <= line.total_device_ns for line in profile.lines
        )


def record(code: Callable[[], Any], folder: Path, **options: Any) -> Recorded:
    """Runs `code` inside `deepscope.profile`, after a first run outside it that makes the device ready."""
    import torch

    code()
    torch.cuda.synchronize()
    with deepscope.profile(folder, **options) as prof:
        code()
    return recorded(prof, Path(code.__code__.co_filename))


def recorded(prof: Any, code: Path) -> Recorded:
    """The newest trace of a finished recording (`deepscope.profile`, `DeepProfiler`), its sums checked."""
    trace = prof.traces[-1]
    found = Recorded(deepscope.load_profile(trace), trace, code)
    found.check_conservation()
    return found


def line_of(code: Path, mark: str) -> int:
    """The number of the one line that carries the comment `# @mark`."""
    lines = code.read_text(encoding="utf-8").splitlines()
    found = [number for number, text in enumerate(lines, 1) if re.search(rf"# @{mark}\b", text)]
    assert len(found) == 1, f"{code.name}: @{mark} on lines {found}"
    return found[0]


def total_ns(spans: list[Span]) -> int:
    """The sum of durations; some there must be."""
    assert spans, "the trace holds no such work"
    return sum(span.duration_ns for span in spans)


def union_ns(spans: list[Span]) -> int:
    """The time in which at least one of them ran."""
    covered, end = 0, None
    for span in sorted(spans, key=lambda span: span.start_ns):
        begin = span.start_ns if end is None else max(span.start_ns, end)
        covered += max(0, span.end_ns - begin)
        end = span.end_ns if end is None else max(end, span.end_ns)
    return covered


def _span(event: dict[str, Any]) -> Span:
    start = int(Decimal(event["ts"]) * 1000)
    end = start + int(Decimal(event.get("dur", 0)) * 1000)
    category = event.get("cat", "")
    return Span(event["name"], category, (event["pid"], event["tid"]), start, end, event.get("args") or {})


def _sum(profile: Profile, number: str) -> int:
    return sum(getattr(line, number) for line in profile.lines) + int(getattr(profile.no_line, number))
