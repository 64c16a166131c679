"""The foot of the text report: what was resolved, what hides in libraries and workers, what to know of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from deepscope.analysis.verdict import Reason
from deepscope.printable import printable
from deepscope.quantities import count_text, share_text, time_text
from deepscope.records import Costs, Function, Library, Line, Profile, TraceInfo, key_figures
from deepscope.records.source_files import short_place
from deepscope.report.counters import busy_words, counter_words
from deepscope.report.event_names import measured_words
from deepscope.report.line_verdict import no_word, why_words
from deepscope.report.step_table import step_times_words
from deepscope.report.terminal import shown_words

LIBRARY_HINTS = 5
LIBRARY_FUNCTIONS = 3
"""Functions named for each package."""
WARNINGS = 5
"""Of what the trace warns of, such as ranks that could not be read."""
WORKER_LINES = 3
WHY_LINES = 5
"""Lines whose verdict is given with its figures."""
WHY_FROM = 0.05
"""They cost at least this share of what all lines cost."""
_LENGTHENED = 1.25
"""Recording may have cost this many times what was taken off before the report says so."""
LIBRARY_FROM = 0.05
"""If a line spends this share of all device time in a package, the report says where."""
_WAITED_FROM = 100
"""Waits are named from one part in so many of the wall time on."""
_NO_VERDICT = {
    Reason.NO_PEAKS: f"no verdict, {Reason.NO_PEAKS}; --peaks takes them",
    Reason.NO_BYTES: f"{Reason.NO_BYTES}; --line opens it",
}
_TORCH_LAYERS = "torch.nn."
_HOW_TO_KNOW = "let DeepScope be there before code is compiled (deepscope run, or profile() before the first call)"
_COMPOSED = "torch.nn.modules.transformer"
"""Of torch's own layers only these are made of others: inside a `Linear` there is nothing to see but its operator."""


def footer(profile: Profile, by: str, rows: Sequence[Any], left_out: int) -> Iterator[tuple[str, str]]:
    """Entries of the foot, each a title and its printable text, below some rows of the table `by`."""
    if left_out:
        yield "more", shown_words(len(rows), len(rows) + left_out)
    if profile.totals.device_ns:
        yield "resolved", _resolved(profile)
    if by == "step":
        yield from step_times_words(profile)
    if by == "counter":
        for words in counter_words(profile):
            yield "counters", words
    if by == "line":
        for words in _why(profile, rows):
            yield "why", words
        for hint in _libraries(profile, rows):
            yield "library", hint
        if waited := _waited(profile):
            yield "waited", waited
        if workers := _workers(profile):
            yield "workers", workers
    yield from _notes(profile, rows)


def _why(profile: Profile, rows: Sequence[Any]) -> Iterator[str]:
    """The figures behind the verdicts of the lines that cost most, and why some of these have none."""
    costs = Costs.of(profile)
    largest = costs.ranked(row for row in rows if isinstance(row, Line))[:WHY_LINES]
    reasons: dict[str, list[str]] = {}
    for line in largest:
        if costs.share(line) >= WHY_FROM:
            place = short_place(line.file, line.line, profile.trace.project_root)
            if words := why_words(line, profile.peaks, on_device=profile.metric == "device"):
                yield printable(f"{place}: {words}")
            elif (reason := no_word(line, profile.peaks)) != Reason.NO_COST:
                reasons.setdefault(reason, []).append(place)
    for reason, places in reasons.items():
        if reason in _NO_VERDICT:
            yield printable(f"{', '.join(places)}: {_NO_VERDICT[reason]}")


def _resolved(profile: Profile) -> str:
    found = profile.resolved
    whole = found.line_ns + found.function_ns + found.module_ns + found.none_ns
    parts = ((found.line_ns, "at lines"), (found.function_ns, "at functions"), (found.module_ns, "at modules"))
    known = share_text(whole - found.none_ns, whole) or "0%"
    what = measured_words(profile)
    places = [(share_text(part, whole), name) for part, name in parts if part]
    if len(places) == 1:
        return f"{known} of the {what} is known {places[0][1]}"
    listed = ", ".join(f"{share} {name}" for share, name in places)
    return f"{known} of the {what} has a place in the code" + (f": {listed}" if listed else "")


def _libraries(profile: Profile, lines: Sequence[Line]) -> Iterator[str]:
    """Where in packages the lines spend their time: package by package, the largest first."""
    found: list[tuple[int, Line, list[Library]]] = []
    for line in lines:
        packages: dict[str, list[Library]] = {}
        for library in line.libraries:
            if not library.module.startswith(_TORCH_LAYERS) or library.module == _COMPOSED:
                packages.setdefault(library.include, []).append(library)
        found += [(max(one.include_ns for one in functions), line, functions) for functions in packages.values()]
    found = [one for one in found if one[0] and one[0] >= LIBRARY_FROM * profile.totals.device_ns]
    for package_ns, line, functions in sorted(found, key=lambda one: -one[0])[:LIBRARY_HINTS]:
        name = short_place(line.file, line.line, profile.trace.project_root)
        where = f"{share_text(package_ns, line.self_device_ns)} of it in {_functions(package_ns, line, functions)}"
        opened = f'--line {name} opens it up, include="{functions[0].include}" counts its lines as yours'
        yield printable(f"{name}: {where}; {opened}")


def _functions(package_ns: int, line: Line, functions: Sequence[Library]) -> str:
    """A package and the functions in which a line spends most there; a single one needs no share of its own."""
    package = functions[0].include.removesuffix(".*")
    listed = sorted(functions, key=lambda one: -one.device_ns)[:LIBRARY_FUNCTIONS]
    if listed[0].device_ns == package_ns:
        return f"{listed[0].function} of {package}"
    shares = ", ".join(f"{share_text(one.device_ns, line.self_device_ns)} {one.function}" for one in listed)
    return f"{package} ({shares})"


def _waited(profile: Profile) -> str:
    """The lines on which Python was off the CPU for long."""
    least = max(profile.totals.wall_ns // _WAITED_FROM, 1)
    kinds = (
        ("blocked (asleep, or on a file, a network, a lock, another thread)", "blocked_ns"),
        ("for data-loader workers", "loader_wait_ns"),
        ("for a core, while other work had them all", "core_wait_ns"),
    )
    parts = [f"{words}: {named}" for words, field in kinds if (named := _largest_lines(profile, field, least))]
    return printable("; ".join(parts))


def _largest_lines(profile: Profile, field: str, least_ns: int = 1) -> str:
    """`12.3ms train.py:4 main, …` of the lines with most of a time; "" where none has so much."""
    root = profile.trace.project_root
    lines = [line for line in profile.lines if getattr(line, field) >= least_ns]
    lines.sort(key=lambda line: -getattr(line, field))
    return ", ".join(
        f"{time_text(getattr(line, field))} {short_place(line.file, line.line, root)} {line.function}"
        for line in lines[:WORKER_LINES]
    )


def _workers(profile: Profile) -> str:
    named = _largest_lines(profile, "worker_ns")
    if not named:
        return ""
    whole = profile.totals.worker_ns or sum(line.worker_ns for line in profile.lines)
    cpu_ns = profile.totals.worker_cpu_ns
    on_cpu = f" ({share_text(cpu_ns, whole)} of it on the CPU)" if cpu_ns else ""
    return printable(f"{time_text(whole)} in data-loader processes{on_cpu}, in no other number: {named}")


def _taken_off(profile: Profile) -> str:
    """Recording cost taken off the lines' times; the rest is calls, entries without a scope, a slower Python."""
    off_ns, own_ns = sum(line.recording_ns for line in profile.lines), profile.totals.recording_ns
    if off_ns * _LENGTHENED >= own_ns or not off_ns:
        return "taken off the CPU times"
    return f"of which {time_text(off_ns)} are taken off the CPU times"


def _window_words(info: TraceInfo) -> str:
    spent = info.recording.get("recorder_ns")
    whole_ns = sum(spent.values()) if isinstance(spent, dict) else 0
    return f"; opening, ending and exporting the window {time_text(whole_ns)} more" if whole_ns else ""


def _added_words(profile: Profile) -> str:
    """What recording really added to a step, beside the stated cost of recording lines."""
    recording = profile.trace.recording
    if not recording or not profile.totals.steps:
        return ""
    recorded, plain = recording.get("recorded_steps"), recording.get("plain_steps")
    if not recorded or not plain:
        return "what recording added to a step cannot be told: no plain steps are known, outside the window"
    (recorded_ns, low_ns, _), (plain_ns, _, high_ns) = _wall(recorded), _wall(plain)
    words = (
        f"a recorded step took {_with_spread(recorded)}, a plain one {_with_spread(plain)} "
        f"(means of {recorded['steps']} and {plain['steps']} steps, half of which lie between)"
    )
    if low_ns <= high_ns or recorded_ns <= plain_ns:
        return f"{words}: no more than they differ among themselves"
    added_ns = recorded_ns - plain_ns
    if profile.totals.added_ns and profile.metric == "device":
        return f"{words}: recording added {time_text(added_ns)}, taken off the steps and the device's idle time"
    taken_ns = min(profile.totals.added_ns // profile.totals.steps, added_ns)
    taken = f", of which {time_text(taken_ns)} are taken off the steps" if taken_ns else ""
    return f"{words}: recording added {time_text(added_ns)}{taken}"


def _behind_words(profile: Profile) -> str:
    """What the steps' length does not say, where the CPU runs further and further ahead of the device."""
    device_ns = key_figures(profile).device_step_ns
    if device_ns is None:
        return ""
    return (
        f"the device was {time_text(profile.totals.behind_ns)} behind as the last step ended, for nothing had waited "
        f"for it: it takes about {time_text(device_ns)} a step, and the CPU will have to wait for it"
    )


def _wall(times: Mapping[str, Any]) -> tuple[int, int, int]:
    """Mean, first and third quartile."""
    low_ns, _, high_ns = times["wall"]["quartiles_ns"]
    return times["wall"]["mean_ns"], low_ns, high_ns


def _with_spread(times: Mapping[str, Any]) -> str:
    return "{} [{} to {}]".format(*map(time_text, _wall(times)))


def _compiled(profile: Profile, lines: Sequence[Line]) -> Iterator[tuple[str, str]]:
    """What became of the kernels of compiled code, and how to get more."""
    if any(line.in_compiled_region for line in lines):
        calls = "c a call into a compiled region: its kernels stand at"
        if profile.totals.compiled_at_call_ns:
            yield "note", f"{calls} the line of the call where the graph does not know its lines: {_HOW_TO_KNOW}"
        elif any(line.shared_ns for line in profile.lines):
            yield "note", f"{calls} the lines that they were made from, the rest at the line of the call"
        else:
            yield "note", f"{calls} the line of the call"
    if any(line.shared_ns for line in lines):
        yield "note", "f has parts of kernels that were fused from several lines, divided by their operations"


def _notes(profile: Profile, rows: Sequence[Any]) -> Iterator[tuple[str, str]]:
    info = profile.trace
    lines = [row for row in rows if isinstance(row, (Line, Function))]
    if lines and info.line_source == "frames":
        yield "note", "recorded without line scopes: numbers stand at functions, named by their first line"
    elif lines and info.line_source == "call_stack":
        yield "note", "recorded without line scopes: lines are those of torch's call stacks, often a function's first"
    elif any(not (row.exact or row.fused) for row in rows if isinstance(row, Line)):
        of_loops = any(row.of_loop for row in rows if isinstance(row, Line))
        what = "a whole function or loop" if of_loops else "a whole function"
        yield "note", f"~ the numbers of {what}, named by its first line"
    yield from _compiled(profile, [row for row in rows if isinstance(row, Line)])
    if info.truncated:
        yield "note", "the trace ends early; these numbers are of what is whole"
    if profile.totals.recording_ns:
        run = key_figures(profile)
        cost = f"{time_text(run.recording_ns)} ({share_text(run.recording_share, 1)})"
        entries = info.recording.get("entries")
        of_entries = f" for {count_text(entries)} line entries" if isinstance(entries, int) else ""
        yield "note", f"recording itself took {cost}{of_entries}, {_taken_off(profile)}{_window_words(info)}"
    if behind := _behind_words(profile):
        yield "note", behind
    memory_ns = info.recording.get("memory_ns")
    if isinstance(memory_ns, int) and memory_ns:
        yield "note", f"looking at what holds memory took {time_text(memory_ns)}, at its window's ends and in its steps"
    if lines and (added := _added_words(profile)):
        yield "note", added
    if busy := busy_words(info):
        yield "note", busy
    for warning in info.warnings[:WARNINGS]:
        yield "note", printable(warning)
    if len(info.warnings) > WARNINGS:
        yield "note", shown_words(WARNINGS, len(info.warnings), what="notes", rest="--format json has them all")
