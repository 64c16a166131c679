"""Hovers: all that is known of a line or a function, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from deepscope.report.places import short_path
from deepscope.store.profile import Finding, Function, Line, Numbers, Profile, Top
from deepscope_lsp.engine import markdown, wording
from deepscope_lsp.engine.annotation import Mark
from deepscope_lsp.engine.baseline import Baseline
from deepscope_lsp.engine.findings import evidence_words
from deepscope_lsp.engine.measure import Measure
from deepscope_lsp.engine.profile_index import Call, ProfileIndex

__all__ = ["HoverContext", "function_hover", "line_hover", "trace_words"]

TOP_COUNT = 5
CALL_COUNT = 6
SENTENCE_LENGTH = 600

Locate = Callable[[str, int], "tuple[str, int] | None"]
"""A recorded file and line → URI and line now; None where the file is not here."""


@dataclass(frozen=True, slots=True)
class HoverContext:
    """What a hover is about, beside the numbers."""

    index: ProfileIndex
    locate: Locate
    baseline: Baseline | None = None
    mark: Mark = Mark.NONE
    text_words: str = ""
    """Whether the text still is what ran."""
    findings: Sequence[Finding] = ()

    @property
    def measure(self) -> Measure:
        """The profile's scales."""
        return self.index.measure

    def place(self, file: str, line: int) -> str:
        """`train.py:42`, a link where the file is here."""
        found = self.locate(file, line)
        words = f"{short_path(file, self.index.profile.trace.project_root)}:{found[1] if found else line}"
        return markdown.plain(words) if found is None else markdown.link(words, *found)


def line_hover(line: Line, context: HoverContext) -> str:
    """A measured line: its numbers, what they are made of, and who calls it."""
    sections = [
        _title(f"{line.function}, line {line.line}", context),
        _table(line, context.measure),
        _facts(line, context.measure),
        _ranks(line, context.measure),
        _change(line, context),
        _tops("Kernels", line.top_kernels, context.measure),
        _tops("Operators", line.top_operators, context.measure),
        _libraries(line, context.measure),
        _findings(context.findings, context.measure),
        _calls("Called from", context.index.callers(line.file, line.line), context),
        _calls("Calls", context.index.callees(line.file, line.line), context),
        _remarks(line),
        _footer(context),
    ]
    return "\n\n".join(section for section in sections if section)


def function_hover(function: Function, context: HoverContext) -> str:
    """A measured function: all its lines together."""
    sections = [
        _title(function.function, context),
        _table(function, context.measure),
        _facts(function, context.measure),
        _calls("Called from", context.index.callers_of_function(function.file, function.line), context),
        f"Defined at {context.place(function.file, function.line)}",
        _footer(context),
    ]
    return "\n\n".join(section for section in sections if section)


def trace_words(profile: Profile) -> str:
    """Which trace, when, where and at which commit, as plain text."""
    info = profile.trace
    words = [short_path(info.path, info.project_root).replace("\\", "/").rsplit("/", 1)[-1]]
    if info.recorded_at:
        words.append(f"recorded {info.recorded_at[:19].replace('T', ' ')}")
    if info.device:
        words.append(f"on {info.device}")
    if len(info.ranks) > 1:
        words.append(f"{len(info.ranks)} ranks")
    if info.stage:
        words.append(f"stage {info.stage}")
    if profile.step is not None:
        words.append(f"step {profile.step}")
    if info.git_commit:
        words.append(f"commit {info.git_commit[:10]}{' with changes' if info.git_dirty else ''}")
    return ", ".join(words)


def _title(name: str, context: HoverContext) -> str:
    mark = f" ({context.mark.value})" if context.mark is not Mark.NONE else ""
    return f"**{markdown.plain(name)}**{mark}"


def _table(numbers: Numbers, measure: Measure) -> str:
    device = measure.device_word
    forward_ns = numbers.self_device_ns - numbers.backward_device_ns
    of_device = [
        (device, numbers.self_device_ns),
        ("forward", forward_ns if numbers.backward_device_ns else 0),
        ("backward", numbers.backward_device_ns),
        (f"{device} with calls", numbers.total_device_ns if numbers.total_device_ns > numbers.self_device_ns else 0),
        ("collectives", numbers.collective_ns),
        ("collectives not overlapped", numbers.collective_exposed_ns),
    ]
    of_wall = [
        ("CPU", numbers.self_cpu_ns),
        ("CPU with calls", numbers.total_cpu_ns if numbers.total_cpu_ns > numbers.self_cpu_ns else 0),
        ("waiting for the device", numbers.wait_ns),
        ("device idle meanwhile", numbers.idle_ns),
        ("data-loader workers", numbers.worker_cpu_ns),
    ]
    if not measure.is_device:
        of_device[0] = ("operators on the CPU", numbers.self_device_ns)
        of_device[3] = ("operators with calls", of_device[3][1])
        of_wall[0] = ("whole line on the CPU", numbers.self_cpu_ns)
        of_wall[1] = ("whole line with calls", of_wall[1][1])
    rows = [_row(name, value, measure.share(value), "busy", measure) for name, value in of_device if value]
    rows += [_row(name, value, measure.wall_share(value), "wall", measure) for name, value in of_wall if value]
    if not rows:
        return ""
    return markdown.table(["", measure.step_words, "share"], rows)


def _row(name: str, value_ns: int, ratio: float, whole: str, measure: Measure) -> list[str]:
    return [name, wording.duration(measure.per_step(value_ns)), f"{wording.share(ratio)} of {whole}"]


def _facts(numbers: Numbers, measure: Measure) -> str:
    per_step = measure.per_step
    facts = []
    if numbers.calls or numbers.launches:
        facts.append(f"calls {_count(per_step(numbers.calls))}, launches {_count(per_step(numbers.launches))}")
    if numbers.bytes_allocated or numbers.bytes_freed:
        allocated, freed = per_step(numbers.bytes_allocated), per_step(numbers.bytes_freed)
        facts.append(f"memory {wording.size(allocated)} allocated, {wording.size(freed)} freed")
    if numbers.peak_bytes:
        facts.append(f"{wording.size(numbers.peak_bytes)} of the peak")
    for words, size, duration in (
        ("to the device", numbers.h2d_bytes, numbers.h2d_ns),
        ("from the device", numbers.d2h_bytes, numbers.d2h_ns),
        ("on the device", numbers.d2d_bytes, numbers.d2d_ns),
    ):
        if size or duration:
            facts.append(f"copies {words} {wording.size(per_step(size))} in {wording.duration(per_step(duration))}")
    if speed := wording.rate(numbers.flops, numbers.self_device_ns):
        facts.append(speed)
    if not facts:
        return ""
    return f"{measure.step_words.capitalize()}: {'; '.join(facts)}"


def _ranks(line: Line, measure: Measure) -> str:
    spread = line.spread
    if spread is None:
        return ""
    median_ns: int | None = getattr(spread, "median_ns", None)  # not every version of a profile has it
    shown = [("min", spread.min_ns, f" (rank {spread.min_rank})")]
    if median_ns is not None:
        shown.append(("median", median_ns, ""))
    shown.append(("max", spread.max_ns, f" (rank {spread.max_rank}, the slowest)"))
    words = [f"{name} {wording.duration(measure.per_step_of_rank(value))}{which}" for name, value, which in shown]
    return f"Ranks: {', '.join(words)}"


def _change(line: Line, context: HoverContext) -> str:
    if context.baseline is None:
        return ""
    old = context.baseline.own_ns(line.file, line.line)
    new = context.measure.per_step(line.self_device_ns)
    info = context.baseline.index.profile.trace
    name = info.path.replace("\\", "/").rsplit("/", 1)[-1]
    return f"Against {markdown.code(name)}: {wording.change(old, new)} {context.measure.step_words}"


def _tops(title: str, tops: Sequence[Top], measure: Measure) -> str:
    rows = [
        f"- {markdown.code(top.name)} {wording.duration(measure.per_step(top.device_ns))} ({top.count:,} calls)"
        for top in tops[:TOP_COUNT]
    ]
    return _list(title, rows)


def _libraries(line: Line, measure: Measure) -> str:
    rows = [
        f"- {markdown.code(f'{library.module}.{library.function}')} {markdown.code(library.operator)} "
        f"{wording.duration(measure.per_step(library.device_ns))}; record with "
        f"{markdown.code(f'include=[{library.include!r}]')} to see its lines"
        for library in line.libraries[:TOP_COUNT]
    ]
    return _list("Spent in libraries", rows)


def _findings(findings: Iterable[Finding], measure: Measure) -> str:
    rows = []
    for finding in findings:
        words = f"{finding.message}. {finding.remedy.text} ({evidence_words(finding.evidence, measure)})"
        rows.append(f"- **{markdown.plain(finding.title)}** {markdown.plain(words, SENTENCE_LENGTH)}")
    return _list("Findings", rows)


def _calls(title: str, calls: Sequence[Call], context: HoverContext) -> str:
    rows = []
    for call in calls[:CALL_COUNT]:
        duration = wording.duration(context.measure.per_step(call.device_ns or call.cpu_ns))
        word = "" if call.device_ns else " CPU"
        rows.append(
            f"- {context.place(call.line.file, call.line.line)} {markdown.plain(call.line.function)}{word} {duration}"
        )
    if len(calls) > CALL_COUNT:
        rows.append(f"- {len(calls) - CALL_COUNT} more")
    return _list(title, rows)


def _remarks(line: Line) -> str:
    remarks = []
    if not line.exact:
        remarks.append("The trace has no line scopes here: the numbers are those of the whole function.")
    if line.in_compiled_region:
        remarks.append("Inside a compiled region: kernels of the region count for the line that called it.")
    return " ".join(remarks)


def _footer(context: HoverContext) -> str:
    words = trace_words(context.index.profile)
    if context.text_words:
        words += f"; {context.text_words}"
    return f"Trace: {markdown.plain(words, SENTENCE_LENGTH)}"


def _list(title: str, rows: Sequence[str]) -> str:
    return "\n".join([f"{title}:", "", *rows]) if rows else ""


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"
