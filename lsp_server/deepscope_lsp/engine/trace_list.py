"""What a list of traces says of each: from its name and head, and from the cache where it was read before."""

from __future__ import annotations

from typing import Any

from deepscope.records import Profile
from deepscope.store import cache
from deepscope.store.recognition import FoundTrace
from deepscope_lsp.engine.recorded_path import parts_of
from deepscope_lsp.engine.step_times import mean_step_ns

__all__ = ["describe", "program_of"]


def describe(found: FoundTrace) -> dict[str, Any]:
    """One trace: `run` is shared by the traces of one run; what is not in its head is "" or null until it was read."""
    file, head = found.file, found.identity
    kept = cache.load(file, step=None, partial=False)
    info = kept.trace if kept is not None else None
    return {
        "path": file.path,
        "name": file.name,
        "sizeBytes": file.size_bytes,
        "recordedNs": found.time_ns,
        "run": f"{found.run.folder}#{found.run.word}",
        "program": head.program or (program_of(kept) if kept is not None else ""),
        "stepNs": mean_step_ns(kept) if kept is not None else None,
        "rank": head.rank if head.rank is not None else (info.ranks[0] if info is not None and info.ranks else None),
        "worldSize": head.world_size,
        "window": head.window,
        "stage": head.stage or (info.stage if info is not None else ""),
        "device": info.device if info is not None else "",
        "commit": info.git_commit if info is not None else "",
    }


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
