"""Call paths as folded stacks for flame graph scripts: each line has one path and its time in nanoseconds.

https://github.com/brendangregg/FlameGraph#2-fold-stacks
"""

from __future__ import annotations

from deepscope.printable import printable
from deepscope.records import PartKey, Profile
from deepscope.records.places import short_place
from deepscope.report.paths import Depth, Metric, stacks
from deepscope.report.places import place_name


def folded_report(profile: Profile, depth: Depth = "kernel", metric: Metric = "device") -> str:
    """One line a call path with time: `main (train.py:3);forward (net.py:9);aten::mm 1200`."""
    root = profile.trace.project_root
    names = [_frame(f"{line.function} ({short_place(line.file, line.line, root)})") for line in profile.lines]
    names.append("(no user line)")
    places = [_frame(_place(place, root)) for place in profile.places]
    rows = []
    for stack in stacks(profile, depth):
        time = stack.device_ns if metric == "device" else stack.cpu_ns
        if time:
            frames = [names[line] for line in stack.lines] + [places[place] for place in stack.places]
            rows.append(f"{';'.join(frames)} {time}\n")
    return "".join(rows)


def _place(place: PartKey, root: str) -> str:
    where = f" ({short_place(place.file, place.line, root)})" if place.kind == "library" and place.line else ""
    return place_name(place.kind, place.name) + where


def _frame(name: str) -> str:
    return printable(name).replace(";", ",")
