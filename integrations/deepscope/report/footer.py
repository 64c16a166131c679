"""The foot of the text report: what was resolved, what hides in libraries and workers, what to know of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from deepscope.report.places import short_path
from deepscope.report.wording import count_text, printable, share_text, time_text
from deepscope.store.profile import Function, Line, Profile

__all__ = ["footer"]

LIBRARY_HINTS = 3
WORKER_LINES = 3
LIBRARY_SHARE = 0.5
"""A hint is given where at least half of a line's time goes to one place in a library."""
_TORCH_LAYERS = "torch.nn.modules."
_COMPOSED = "torch.nn.modules.transformer"
"""Of torch's own layers only these are made of others: inside a `Linear` there is nothing to see but its operator."""


def footer(profile: Profile, by: str, rows: Sequence[Any], left_out: int) -> Iterator[tuple[str, str]]:
    """Entries of the foot, each a title and its printable text.

    Args:
        profile: what is reported.
        by: the table that was shown, with its `rows` and the number of those `left_out`.
        rows: the rows shown.
        left_out: how many rows the limit left out.
    """
    if left_out and by not in {"line", "function"}:
        yield "more", f"{left_out:,} more rows (-n 0 shows all)"
    if profile.totals.device_ns:
        yield "resolved", _resolved(profile)
    if by == "line":
        for hint in _libraries(profile, rows):
            yield "library", hint
        if workers := _workers(profile):
            yield "workers", workers
    yield from _notes(profile, rows)


def _resolved(profile: Profile) -> str:
    found = profile.resolved
    whole = found.line_ns + found.function_ns + found.module_ns + found.none_ns
    parts = ((found.line_ns, "at lines"), (found.function_ns, "at functions"), (found.module_ns, "at modules"))
    known = share_text(whole - found.none_ns, whole) or "0%"
    what = "device time" if profile.metric == "device" else "operators' CPU time"
    places = [(share_text(part, whole), name) for part, name in parts if part]
    if len(places) == 1:
        return f"{known} of the {what} is known {places[0][1]}"
    listed = ", ".join(f"{share} {name}" for share, name in places)
    return f"{known} of the {what} has a place in the code" + (f": {listed}" if listed else "")


def _libraries(profile: Profile, lines: Sequence[Line]) -> Iterator[str]:
    shown = 0
    for line in lines:
        if not line.libraries or shown == LIBRARY_HINTS:
            continue
        library = max(line.libraries, key=lambda one: one.device_ns)
        if library.device_ns < LIBRARY_SHARE * line.self_device_ns:
            continue
        if library.module.startswith(_TORCH_LAYERS) and library.module != _COMPOSED:
            continue
        shown += 1
        name = short_path(line.file, profile.trace.project_root)
        share = share_text(library.device_ns, line.self_device_ns)
        operator = f", {library.operator}" if library.operator else ""
        yield printable(
            f"{name}:{line.line}: {share} of it in {library.function} of {library.module}{operator}; "
            f'include="{library.include}" opens it up'
        )


def _workers(profile: Profile) -> str:
    lines = sorted((line for line in profile.lines if line.worker_cpu_ns), key=lambda line: -line.worker_cpu_ns)
    if not lines:
        return ""
    root = profile.trace.project_root
    named = ", ".join(
        f"{time_text(line.worker_cpu_ns)} {short_path(line.file, root)}:{line.line} {line.function}"
        for line in lines[:WORKER_LINES]
    )
    whole = profile.totals.worker_cpu_ns or sum(line.worker_cpu_ns for line in lines)
    return printable(f"{time_text(whole)} of CPU in data-loader processes, in no other number: {named}")


def _notes(profile: Profile, rows: Sequence[Any]) -> Iterator[tuple[str, str]]:
    info = profile.trace
    lines = [row for row in rows if isinstance(row, (Line, Function))]
    if lines and info.line_source == "frames":
        yield "note", "recorded without line scopes: numbers stand at functions, named by their first line"
    elif lines and info.line_source == "call_stack":
        yield "note", "recorded without line scopes: lines are those of torch's call stacks, often a function's first"
    elif any(not row.exact for row in rows if isinstance(row, Line)):
        yield "note", "~ the numbers of a whole function, named by its first line"
    if any(row.in_compiled_region for row in rows if isinstance(row, Line)):
        yield "note", "c a call into a compiled region: its kernels stand at the line of the call"
    if info.truncated:
        yield "note", "the trace ends early; these numbers are of what is whole"
    if profile.totals.recording_ns:
        own_ns = profile.totals.recording_ns
        cost = f"{time_text(own_ns)} ({share_text(own_ns, profile.totals.wall_ns)})"
        entries = info.recording.get("entries")
        of_entries = f" for {count_text(entries)} line entries" if isinstance(entries, int) else ""
        yield "note", f"recording itself took {cost}{of_entries}, taken off the CPU times"
    for warning in info.warnings:
        yield "note", printable(warning)
