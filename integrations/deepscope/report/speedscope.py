"""Call paths in speedscope's file format.

https://github.com/jlfwong/speedscope/blob/main/src/lib/file-format-spec.ts
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from deepscope.records import CallNode, Profile
from deepscope.report.paths import call_tree, node_path
from deepscope.report.places import short_path
from deepscope.report.wording import printable

__all__ = ["speedscope_report"]

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope_report(profile: Profile) -> str:
    """Sampled profiles of device time (all, and that of backward alone) and of CPU time, one sample a call path."""
    frames: list[dict[str, Any]] = [
        {"name": printable(line.function), "file": line.file, "line": line.line} for line in profile.lines
    ]
    frames.append({"name": "(no user line)"})
    device = "device time" if profile.metric == "device" else "operators' CPU time"
    views: list[tuple[str, Callable[[CallNode], int]]] = [
        (device, lambda node: node.self_device_ns),
        (f"{device}, backward", lambda node: node.backward_device_ns),
        ("CPU time of the lines", lambda node: node.self_cpu_ns),
    ]
    profiles = [_sampled(profile, name, weight) for name, weight in views]
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


def _sampled(profile: Profile, name: str, weight: Callable[[CallNode], int]) -> dict[str, Any]:
    tree = call_tree(profile)
    no_line = len(profile.lines)
    places = [place for place, node in enumerate(tree) if weight(node)]
    weights = [weight(tree[place]) for place in places]
    return {
        "type": "sampled",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [[no_line if line < 0 else line for line in node_path(tree, place)] for place in places],
        "weights": weights,
    }
