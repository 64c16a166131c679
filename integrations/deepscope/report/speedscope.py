"""Call paths in speedscope's file format.

https://github.com/jlfwong/speedscope/blob/main/src/lib/file-format-spec.ts
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from deepscope.printable import printable
from deepscope.records import PartKey, Profile
from deepscope.records.places import short_path
from deepscope.report.paths import Depth, Metric, Stack, stacks
from deepscope.report.places import place_name

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope_report(profile: Profile, depth: Depth = "kernel", metric: Metric | None = None) -> str:
    """Sampled profiles of device time (all, and that of backward alone) and of CPU time, one sample a call path.

    With a `metric` it is one of device time (of backward beside it) or of CPU time alone.
    """
    frames: list[dict[str, Any]] = [
        {"name": printable(line.function), "file": line.file, "line": line.line} for line in profile.lines
    ]
    frames.append({"name": "(no user line)"})
    frames += map(_frame, profile.places)
    device = "device time" if profile.metric == "device" else "operators' CPU time"
    views: list[tuple[str, Callable[[Stack], int]]] = [
        (device, lambda stack: stack.device_ns),
        (f"{device}, backward", lambda stack: stack.backward_device_ns),
        ("CPU time of the lines", lambda stack: stack.cpu_ns),
    ]
    if metric is not None:
        views = views[:2] if metric == "device" else views[2:]
    found = list(stacks(profile, depth))
    profiles = [_sampled(found, len(profile.lines), name, weight) for name, weight in views]
    return json.dumps(
        {
            "$schema": SCHEMA,
            "exporter": "deepscope",
            "name": printable(short_path(profile.trace.path)),
            "activeProfileIndex": 0,
            "shared": {"frames": frames},
            "profiles": [profiles[0], *(one for one in profiles[1:] if one["samples"])],
        }
    )


def _frame(place: PartKey) -> dict[str, Any]:
    where = {"file": place.file, "line": place.line} if place.file and place.line else {}
    return {"name": place_name(place.kind, place.name), **where}


def _sampled(found: list[Stack], no_line: int, name: str, weight: Callable[[Stack], int]) -> dict[str, Any]:
    """`no_line` is the frame of work that reached no line; those of places stand after it."""
    chosen = [stack for stack in found if weight(stack)]
    weights = [weight(stack) for stack in chosen]
    return {
        "type": "sampled",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [
            [*(no_line if line < 0 else line for line in stack.lines), *(no_line + 1 + place for place in stack.places)]
            for stack in chosen
        ],
        "weights": weights,
    }
