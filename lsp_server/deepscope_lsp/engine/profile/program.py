"""Which program a profile is of."""

from __future__ import annotations

from deepscope.records import Profile
from deepscope_lsp.engine.recorded_path import parts_of


def program_of(profile: Profile) -> str:
    """The program that a profile is of: as recorded, else the file from which most of the time was called; or ""."""
    if profile.trace.program:
        return profile.trace.program
    weights: dict[str, int] = {}
    for place, node in enumerate(profile.call_tree):
        root = place
        while (parent := profile.call_tree[root].parent) >= 0:
            root = parent
        line = profile.call_tree[root].line
        if line >= 0 and profile.lines[line].file:
            file = profile.lines[line].file
            weights[file] = weights.get(file, 0) + node.self_device_ns + node.self_cpu_ns
    if not weights:
        return ""
    return "".join(parts_of(max(weights, key=lambda file: weights[file])).parts[-1:])
