"""What must hold of any file: a profile whose parts sum to the whole, none of them negative, or an error of ours."""

from __future__ import annotations

import json
import resource
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import msgspec

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.event_tables import EVENT_TABLES, event_table
from deepscope.analysis.tables.collectives import MOST_CALLS
from deepscope.comparison import TABLES as COMPARED
from deepscope.comparison import compare
from deepscope.dashboard.html_file import html_file
from deepscope.dashboard.timeline.index import open_timeline
from deepscope.errors import DeepScopeError
from deepscope.ranks.rank_summary import summary_of
from deepscope.ranks.side_by_side import side_by_side
from deepscope.records import PHASES, Numbers, Profile
from deepscope.records.columns import column_table, table_names
from deepscope.records.ranks import merge_profiles
from deepscope.report.comparison_report import comparison_json, comparison_markdown, comparison_text
from deepscope.report.exports.call_paths import folded_report, pprof_profile, speedscope_report
from deepscope.report.exports.perfetto import perfetto_text, timelines
from deepscope.report.exports.tables import profile_json, write_csv_files
from deepscope.report.exports.tensorboard import scalars
from deepscope.report.filters import Filters
from deepscope.report.json_csv import csv_report, json_report
from deepscope.report.line_report import line_json, line_text
from deepscope.report.line_tree import below
from deepscope.report.operator_ranking import RankingQuery, ranking, ranking_csv, ranking_json, ranking_text
from deepscope.report.tables import TABLES
from deepscope.report.text_report import text_report
from deepscope.store import load_profile
from deepscope.store.files import single_file
from deepscope.store.load import Traces
from deepscope_lsp.engine.profile_index import ProfileIndex
from fuzz.cases import Case

__all__ = ["TooLongError", "judge", "judge_profile"]

MOST_CPU_S = 20
"""Of CPU time for one file; the slowest takes a tenth of it."""
_SIGNED = {"peak_at_ns", "parent", "line", "start_ns", "delta_ns", "device", "stream"}


class TooLongError(Exception):
    """A file took more CPU time than any of its size should."""


def judge(case: Case, folder: Path, *, deeply: bool) -> str:
    """Reads a case and checks what came of it; returns `profile` or the name of the error.

    With `deeply`, everything that is made from a profile is made too. Raises whatever should not have happened.
    """
    path = folder / case.name
    path.write_bytes(case.data)
    try:
        with _bounded_cpu_time():
            try:
                profile = load_profile(path, partial=case.partial, step=case.step, cache=False)
            except DeepScopeError as error:
                if "\n" in str(error) or not str(error):
                    raise AssertionError(f"a message of several lines, or none: {error!s:.200}") from error
                return type(error).__name__
            judge_profile(profile)
            if deeply:
                _make_everything(profile)
                for analysis in Traces(path, partial=case.partial, step=case.step):
                    _make_all_of_events(analysis, profile)
                _make_parts(path, case, profile)
                _make_timeline(path, case)
    finally:
        path.unlink()
    return "profile"


def _make_parts(path: Path, case: Case, whole: Profile) -> None:
    """The operators in detail, and the phases: they sum to the whole."""
    detailed = load_profile(path, partial=case.partial, step=case.step, details=("shapes", "stacks"), cache=False)
    for name in ("calls", "self_device_ns", "total_device_ns", "self_cpu_ns", "flops"):
        sums = [sum(getattr(row, name) for row in rows) for rows in (detailed.operators_in_detail, whole.operators)]
        assert sums[0] == sums[1], name
    question = RankingQuery(by="type")
    found = ranking(detailed, question)
    ranking_text(detailed, found, question, limit=0, width=80).encode("utf-8")
    ranking_json(detailed, found, question, limit=0)
    ranking_csv(found, limit=0)
    for by in ("operator", "kernel", "module"):
        text_report(detailed, by=by, filters=Filters(include=("*a*",), min_ns=1)).encode("utf-8")
        json_report(detailed, by=by)
        csv_report(detailed, by=by)
    parts = [
        load_profile(path, partial=case.partial, step=case.step, phase=phase, cache=False)
        for phase in PHASES[len(case.data) % 2 :: 2]
    ]
    assert sum(part.totals.device_ns for part in parts) <= whole.totals.device_ns
    for part in parts:
        own = sum(line.self_device_ns for line in part.lines) + part.no_line.self_device_ns
        assert own == part.totals.device_ns


def _make_timeline(path: Path, case: Case) -> None:
    """The timeline: all slices are in the window of the whole, and all questions are answered."""
    file = single_file(str(path))
    assert file is not None
    index = open_timeline(file, partial=case.partial, cache=False)
    head = index.head()
    end_ns = head.end_ns + 1
    window, whole = index.window(0, end_ns, 300), index.selection(0, end_ns)
    assert sum(sum(track.count) for track in window.tracks) == head.slices
    profile = load_profile(path, partial=case.partial, cache=False)
    own = sum(line.self_device_ns for line in profile.lines) + profile.no_line.self_device_ns
    assert sum(line.time_ns for line in whole.lines) == own
    details = [index.details(one) for one in range(0, head.slices, max(head.slices // 20, 1))]
    durations = [index.durations(one.name, one.kind) for one in details[:4]]
    part = index.selection(end_ns // 3, end_ns // 2 + 1)
    msgspec.json.encode([head, window, whole, part, details, durations, index.search("a"), index.at_line("a.py", 1)])


@contextmanager
def _bounded_cpu_time() -> Iterator[None]:
    def stop(signum: int, frame: FrameType | None) -> None:
        raise TooLongError(f"more than {MOST_CPU_S} s of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, MOST_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def judge_profile(profile: Profile) -> None:
    """Conservation, no negative number, and that it can be kept and loaded again."""
    rows: list[Numbers] = [*profile.lines, profile.no_line]
    totals = profile.totals
    for name, whole in {
        "self_device_ns": totals.device_ns,
        "idle_ns": totals.idle_ns,
        "wait_ns": totals.wait_ns,
        "launches": totals.launches,
        "operators": totals.operators,
        "peak_bytes": totals.peak_bytes,
        "flops": totals.flops,
        "worker_ns": totals.worker_ns,
        "worker_cpu_ns": totals.worker_cpu_ns,
    }.items():
        parts = sum(getattr(row, name) for row in rows)
        assert parts == whole, f"{name}: the parts are {parts}, the whole {whole}"
    # The recorder states more than the lines have: entries without a scope, and calls.
    assert sum(row.recording_ns for row in rows) <= totals.recording_ns
    resolved = profile.resolved
    placed = resolved.line_ns + resolved.function_ns + resolved.module_ns + resolved.none_ns
    assert placed == totals.device_ns, f"resolved {placed} of {totals.device_ns}"
    assert sum(phase.wall_ns for phase in profile.phases) == totals.wall_ns
    assert sum(phase.device_ns for phase in profile.phases) == totals.device_ns
    assert totals.busy_ns <= totals.device_ns or profile.metric == "cpu_self" or profile.step is not None
    for row in rows:
        assert row.backward_device_ns <= row.self_device_ns <= row.total_device_ns, row
        assert row.python_cpu_ns + row.loader_wait_ns + row.blocked_ns == row.python_ns, row
        assert row.worker_cpu_ns <= row.worker_ns, row
    for number in range(-1, len(profile.lines)):
        own = profile.lines[number] if number >= 0 else profile.no_line
        tree = below(profile, number)
        assert (tree.total_device_ns, tree.backward_device_ns) == (own.self_device_ns, own.backward_device_ns), own
    for times in profile.step_times:
        own = profile.no_line if times.row < 0 else getattr(profile, times.table)[times.row]
        whole = own.device_ns if times.table == "kernels" else own.self_device_ns
        assert 0 <= sum(times.device_ns.values()) <= whole, times
        if times.table == "lines":
            beside_ns = own.idle_ns if profile.metric == "device" else own.python_ns
            assert 0 <= sum(times.beside_ns.values()) <= beside_ns, times
    for call in profile.collective_calls:
        assert call.end_ns >= call.start_ns, call
        assert call.size_bytes >= 0, call
        assert call.line < len(profile.lines), call
        assert min(call.step, call.sequence, call.peer, call.line) >= -1, call
    by_row = Counter(call.collective for call in profile.collective_calls)
    if 0 < len(profile.collective_calls) < MOST_CALLS:
        assert [by_row[number] for number in range(len(profile.collectives))] == [
            row.calls for row in profile.collectives
        ]
    encoded = msgspec.json.encode(profile)
    assert msgspec.json.decode(encoded, type=Profile) == profile
    _check_signs(msgspec.to_builtins(profile), "profile")


def _check_signs(value: object, where: str) -> None:
    if isinstance(value, dict):
        for key, one in value.items():
            if key not in _SIGNED and key != "recording" and not where.endswith("evidence"):
                _check_signs(one, f"{where}.{key}")
    elif isinstance(value, list) and not where.endswith(
        (
            "call_tree",
            "parts",
            ".curve",
            "step_times",
            "collective_calls",
            "counters",
        )  # what was counted may be below 0
    ):
        for number, one in enumerate(value):
            if not (where.endswith("]") and ".rates[" in where and number == 1):  # an intensity is a power of two
                _check_signs(one, f"{where}[{number}]")
    elif isinstance(value, (int, float)):
        assert value >= 0, f"{where} is {value}"


def _make_everything(profile: Profile) -> None:
    for by in TABLES:
        text_report(profile, by=by, limit=20, width=80, color=False).encode("utf-8")
        json_report(profile, by=by).encode("utf-8")
        csv_report(profile, by=by).encode("utf-8")
    speedscope_report(profile).encode("utf-8")
    folded_report(profile).encode("utf-8")
    for one in COMPARED:
        found = compare([profile], [profile], by=one)
        assert all(row.within_noise and not row.change_ns for row in found.rows)
        for words in (comparison_text(found), comparison_json(found), comparison_markdown(found)):
            words.encode("utf-8")
    for form in (profile_json, html_file, Profile._repr_html_):
        form(profile).encode("utf-8")
    pprof_profile(profile)
    one = summary_of(profile)
    other = msgspec.structs.replace(one, rank=one.rank + 1, world_size=max(one.world_size, 2))
    for ranks in ([one], [one, one], [one, other]):
        msgspec.json.encode(side_by_side(ranks))
    with TemporaryDirectory() as folder:
        write_csv_files((column_table(profile, name) for name in table_names(Profile)), Path(folder))
    again = msgspec.json.decode(msgspec.json.encode(profile), type=Profile)
    judge_profile(merge_profiles([profile, again]))
    index = ProfileIndex(profile)
    for number in range(min(len(profile.lines), 3)):
        line_text(profile, number, fold=True).encode("utf-8")
        line_json(profile, number).encode("utf-8")
    for line in profile.lines[:20]:
        index.callers(line.file, line.line)
        index.text_of(line.file, line.line)


def _make_all_of_events(analysis: Analysis, profile: Profile) -> None:
    with TemporaryDirectory() as folder:
        write_csv_files((event_table(analysis, name) for name in EVENT_TABLES), Path(folder))
    whole = sum(event_table(analysis, "op_statistic").column("total_ns").plain())
    assert whole == profile.totals.device_ns, f"op_statistic sums to {whole}, not to {profile.totals.device_ns}"
    list(scalars(analysis))
    json.loads("".join(perfetto_text(timelines([analysis]))))


def limit_memory(size_bytes: int) -> None:
    """From here on this process gets no more address space than so much beyond what it has."""
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + size_bytes, resource.RLIM_INFINITY))
