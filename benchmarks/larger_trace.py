"""Makes a large trace out of a real one: its recording window repeated, later each time, with identifiers of its own.

Each copy is the window once more: the same events, moved in time by whole windows, and every identifier that joins
events (correlation, External id, flow ids, sequence numbers, Python ids, step numbers) moved by a stride above all of
the original's. So each copy is joined within itself alone, steps go on counting, and the sum of device time grows by
exactly the number of copies. What describes the process (`ph: M`, trace spans, instants without a category) stands
once.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

_SHIFTED_ARGS = frozenset(
    {
        "correlation",
        "External id",
        "external id",
        "Sequence number",
        "Python id",
        "Python parent id",
        "Ev Idx",
        "Record function id",
        "Fwd sequence number",
    }
)
_STEP = re.compile(r"ProfilerStep#(\d+)")
_PAUSE_NS = 1_000_000  # between one copy and the next
_BATCH = 20_000  # events written at once


class _Template:
    """One event as text, with places for what a copy changes."""

    __slots__ = ("_format", "_ids", "_start_ns", "_step")

    def __init__(self, event: dict[str, Any]) -> None:
        self._start_ns = _nanoseconds(event.get("ts", 0))
        self._ids: list[int] = []
        self._step: int | None = None
        content = dict(event, ts="\0ts") if "ts" in event else dict(event)
        if "id" in content and event.get("ph") in {"s", "t", "f"}:
            content["id"] = self._place(content["id"])
        if isinstance(event.get("args"), dict):
            content["args"] = {
                key: self._place(value) if key in _SHIFTED_ARGS else value for key, value in event["args"].items()
            }
        if found := _STEP.fullmatch(event.get("name", "")):
            self._step = int(found[1])
            content["name"] = "ProfilerStep#\0step"
        text = json.dumps(content, ensure_ascii=False, default=float).replace("%", "%%")
        text = text.replace('"\\u0000ts"', "%(us)d.%(ns)03d").replace("\\u0000step", "%(step)d")
        for index in range(len(self._ids)):
            text = text.replace(f'"\\u0000id{index}"', f"%(id{index})d")
        self._format = text

    def _place(self, value: Any) -> Any:
        """A mark for a number to be shifted; 0 and less, null and words stay as they are ("none" in every recorder)."""
        if not isinstance(value, int) or value <= 0:
            return value
        self._ids.append(value)
        return f"\0id{len(self._ids) - 1}"

    @property
    def largest_id(self) -> int:
        return max(self._ids, default=0)

    @property
    def step(self) -> int | None:
        return self._step

    def copy(self, *, later_ns: int, stride: int, later_steps: int) -> str:
        us, ns = divmod(self._start_ns + later_ns, 1000)
        values = {f"id{index}": value + stride for index, value in enumerate(self._ids)}
        return self._format % {**values, "us": us, "ns": ns, "step": (self._step or 0) + later_steps}


def write_larger_trace(source: Path, target: Path, copies: int) -> None:
    """Writes `source` repeated `copies` times; a target that ends in `.gz` is compressed.

    Raises:
        ValueError: the source is no Chrome trace with events in time.
    """
    with gzip.open(source) if source.suffix == ".gz" else source.open("rb") as file:
        trace = json.load(file, parse_float=Decimal)  # exact: a float64 of epoch microseconds is off by up to 0.25 µs
    events = trace.pop("traceEvents", None) if isinstance(trace, dict) else trace
    timed = [event for event in events or [] if _is_repeated(event)]
    if not timed:
        raise ValueError(f"{source}: no events with a time and a category")
    once = [event for event in events if not _is_repeated(event)]
    templates = [_Template(event) for event in timed]
    stride = 1 + max(template.largest_id for template in templates)
    steps = [template.step for template in templates if template.step is not None]
    step_stride = max(steps) - min(steps) + 1 if steps else 0
    starts = [_nanoseconds(event["ts"]) for event in timed]
    ends = [start + _nanoseconds(event.get("dur", 0)) for start, event in zip(starts, timed, strict=True)]
    window_ns = max(ends) - min(starts) + _PAUSE_NS

    def lines() -> Iterator[str]:
        for event in once:
            is_end = event.get("name") == "Record Window End"
            later_ns = (copies - 1) * window_ns if is_end else 0
            yield _Template(event).copy(later_ns=later_ns, stride=0, later_steps=0)
        for number in range(copies):
            for template in templates:
                yield template.copy(
                    later_ns=number * window_ns, stride=number * stride, later_steps=number * step_stride
                )

    head = json.dumps(trace if isinstance(trace, dict) else {}, ensure_ascii=False, default=float)[:-1]
    with _open_to_write(target) as out:
        out.write(f'{head}{", " if len(head) > 1 else ""}"traceEvents": [\n'.encode())
        batch: list[str] = []
        separator = ""
        for line in lines():
            batch.append(line)
            if len(batch) == _BATCH:
                out.write((separator + ",\n".join(batch)).encode())
                batch, separator = [], ",\n"
        out.write((separator * bool(batch) + ",\n".join(batch)).encode())
        out.write(b"\n]}\n")


def _is_repeated(event: dict[str, Any]) -> bool:
    return (
        event.get("ph") in {"X", "s", "t", "f", "C", "i"} and event.get("cat") not in {None, "Trace"} and "ts" in event
    )


def _nanoseconds(microseconds: Decimal | float | str) -> int:
    return int((Decimal(microseconds) * 1000).to_integral_value())


def _open_to_write(path: Path) -> BinaryIO:
    if path.suffix != ".gz":
        return path.open("wb")
    try:
        from isal import igzip
    except ImportError:
        return gzip.open(path, "wb", compresslevel=1)
    writer: BinaryIO = igzip.open(path, "wb")
    return writer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="a recorded trace, .json or .json.gz")
    parser.add_argument("target", type=Path, help="where to write, .json or .json.gz")
    parser.add_argument("--copies", type=int, default=7, help="how often the window is repeated (default 7)")
    options = parser.parse_args()
    write_larger_trace(options.source, options.target, options.copies)


if __name__ == "__main__":
    main()
