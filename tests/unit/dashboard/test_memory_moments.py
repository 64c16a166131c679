"""What was live at any moment: against a plain replay of the events, and against the Profile's own peak."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from deepscope.analysis.analysis import Analysis, analyse
from deepscope.analysis.numbers.memory_blocks import device_codes
from deepscope.analysis.ownership.attribution import attribute
from deepscope.analysis.tables.memory import memory_table
from deepscope.dashboard.memory_moments import DeviceMoments, MemoryMoments, moments_of
from deepscope.errors import OptionError
from deepscope.records import Memory
from deepscope.store.cache import decode_columns, encode_columns
from deepscope.trace.read import read_trace
from recorded_traces import each_trace

MOMENTS = 40


@pytest.fixture(scope="module", params=each_trace())
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@lru_cache(maxsize=1)
def analysed(path: Path) -> tuple[Analysis, Memory, MemoryMoments]:
    attribution = attribute(read_trace(path))
    analysis = analyse(attribution)
    return analysis, memory_table(analysis), moments_of(attribution)


def some_rows(device: DeviceMoments) -> list[int]:
    return np.unique(np.linspace(0, len(device.ts_ns) - 1, MOMENTS).astype(int)).tolist()


def test_it_has_the_curves_of_the_profile(path: Path) -> None:
    _, memory, moments = analysed(path)
    assert {one.name for one in moments.devices} == {one.device for one in memory.devices}
    for known in memory.devices:
        device = moments.device(known.device)
        assert device.curve(int(device.ts_ns[0]), int(device.ts_ns[-1])) == known.curve


def test_what_was_live_sums_to_the_curve_at_every_moment(path: Path) -> None:
    _, _, moments = analysed(path)
    for device in moments.devices:
        begin, end = moments.blocks.begin, moments.blocks.end
        for row in some_rows(device):
            at_ns = int(device.ts_ns[row])
            last = int(np.flatnonzero(device.ts_ns <= at_ns)[-1])  # several events may have one time
            place = int(device.place[last])
            live = (moments.blocks.device == device.code) & (begin <= place) & (end > place)
            known = int(moments.blocks.size_bytes[live].sum())
            for by in ("line", "module"):
                held = moments.held_at(device, at_ns, by)
                assert held.at_ns == at_ns
                assert held.allocated_bytes == int(device.allocated_bytes[last])
                assert (held.by_owner >= 0).all()
                assert int(held.by_owner.sum()) == max(held.allocated_bytes, known)


def test_lines_hold_what_a_replay_of_the_events_leaves_them(path: Path) -> None:
    analysis, _, moments = analysed(path)
    use, memory = analysis.memory, analysis.attribution.trace.memory
    for device in moments.devices:
        wanted = {int(device.place[row]) for row in some_rows(device)}
        live: dict[int, tuple[int, int]] = {}
        codes = device_codes(
            memory.device_type[use.rows].astype(np.int64), memory.device_id[use.rows].astype(np.int64)
        ).tolist()
        lines, sizes = use.line.tolist(), memory.size_bytes[use.rows].tolist()
        addresses = memory.address[use.rows].tolist()
        for place, row in enumerate(use.rows.tolist()):
            if codes[place] == device.code:
                live.pop(addresses[place], None)
                if sizes[place] > 0:
                    live[addresses[place]] = sizes[place], lines[place]
            at_ns = int(memory.ts_ns[row])
            is_last_of_its_time = place + 1 == len(use.rows) or int(memory.ts_ns[use.rows[place + 1]]) > at_ns
            if place in wanted and is_last_of_its_time:
                by_line: dict[int, int] = defaultdict(int)
                for size, line in live.values():
                    by_line[line] += size
                held = moments.held_at(device, at_ns, "line").by_owner.sum(axis=1)
                assert {line: size for line, size in enumerate(held[:-1].tolist()) if size} == {
                    line: size for line, size in by_line.items() if line >= 0 and size
                }
                assert int(held[-1]) >= by_line[-1]


def test_at_the_peak_it_is_what_the_profile_has_by_line_and_kind(path: Path) -> None:
    analysis, memory, moments = analysed(path)
    for curve, known in (
        (one, next(k for k in memory.devices if k.peak_at_ns == int(one.ts_ns[one.peak])))
        for one in analysis.memory.devices
    ):
        device = moments.device(known.device)
        row = int(np.argmax(device.allocated_bytes))
        if device.row_at(known.peak_at_ns) == row:
            held = moments.held_at(device, known.peak_at_ns, "line")
            assert (held.by_owner == curve.held_bytes).all()
        else:  # more happened in the same nanosecond
            assert int(device.ts_ns[device.row_at(known.peak_at_ns)]) == int(device.ts_ns[row])
        assert int(device.ts_ns[row]) == known.peak_at_ns


def test_a_window_of_the_curve_has_its_extremes_and_what_is_around_it(path: Path) -> None:
    _, _, moments = analysed(path)
    for device in moments.devices:
        ts, level = device.ts_ns, device.allocated_bytes
        for first, last in ((0.2, 0.4), (0.5, 0.51), (0.9, 2.0)):
            span = int(ts[-1] - ts[0])
            begin, end = int(ts[0] + first * span), int(ts[0] + last * span)
            points = device.curve(begin, end)
            inside = (ts >= begin) & (ts <= end)
            drawn = [point.allocated_bytes for point in points]
            assert points[0].at_ns <= begin
            assert points[-1].at_ns >= min(end, int(ts[-1]))
            assert [point.at_ns for point in points] == sorted(point.at_ns for point in points)
            if inside.any():
                assert int(level[inside].max()) <= max(drawn)
                assert int(level[inside].min()) >= min(drawn)
            assert len(points) <= 2 * 240 + 3


def test_it_is_the_same_on_the_other_side_of_a_pipe(path: Path) -> None:
    _, _, moments = analysed(path)
    again = decode_columns(b"".join(encode_columns(moments)), MemoryMoments)
    assert again.lines == moments.lines
    assert again.modules == moments.modules
    for device in moments.devices:
        other = again.device(device.name)
        for row in some_rows(device)[:5]:
            at_ns = int(device.ts_ns[row])
            assert (
                again.held_at(other, at_ns, "line").by_owner == moments.held_at(device, at_ns, "line").by_owner
            ).all()
            assert (
                again.held_at(other, at_ns, "module").by_owner == moments.held_at(device, at_ns, "module").by_owner
            ).all()


def test_before_the_first_event_it_is_what_the_first_one_left(path: Path) -> None:
    _, _, moments = analysed(path)
    for device in moments.devices:
        assert moments.held_at(device, int(device.ts_ns[0]) - 10**9, "line").at_ns == int(device.ts_ns[0])
        assert moments.held_at(device, 1 << 62, "line").at_ns == int(device.ts_ns[-1])


def test_a_device_that_is_not_there_is_named(path: Path) -> None:
    _, _, moments = analysed(path)
    with pytest.raises(OptionError, match="no memory of it is here"):
        moments.device("cuda:77")
