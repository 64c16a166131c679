"""Hovers: all that is known of a line or a function, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deepscope.analysis.verdict import Reason
from deepscope.quantities import TIMES, spaced
from deepscope.records import Finding, Function, Line, Numbers, Profile, Top, cost_ns
from deepscope.records.source_files import short_path, short_place
from deepscope.report import markdown
from deepscope.report.event_names import place_name, readable
from deepscope.report.line_tree import Node, main_branch
from deepscope.report.line_verdict import no_word, why_words
from deepscope.report.memory import peak_kinds
from deepscope_lsp.engine.baseline import Baseline
from deepscope_lsp.engine.binding import Mark
from deepscope_lsp.engine.path_map import Locate
from deepscope_lsp.engine.profile_index import CallEdge, ProfileIndex, Scales
from deepscope_lsp.engine.wording import quantities
from deepscope_lsp.engine.wording.annotation import fused_words
from deepscope_lsp.engine.wording.findings import evidence_words, tried_sentences
from deepscope_lsp.engine.wording.hover_table import BaselineNumbers, numbers_table

TOP_COUNT = 5
CALL_COUNT = 6
SENTENCE_LENGTH = 600
UNKNOWN = "the noise is unknown (a run of one step): changes may be chance"
CRITICAL_SHARE = 0.005
"""A line with less of the critical path is not said to be on it."""


@dataclass(frozen=True, slots=True)
class HoverContext:
    """What a hover is about, besides the numbers."""

    index: ProfileIndex
    locate: Locate
    baseline: Baseline | None = None
    mark: Mark = Mark.NONE
    text_words: str = ""
    """Whether the text still is what ran."""
    findings: Sequence[Finding] = ()

    @property
    def scales(self) -> Scales:
        """The profile's scales."""
        return self.index.scales

    def place(self, file: str, line: int) -> str:
        """`train.py:42`, a link where the file is here."""
        found = self.locate(file, line)
        words = short_place(file, found[1] if found else line, self.index.profile.trace.project_root)
        return markdown.plain(words) if found is None else markdown.link(words, *found)


def line_hover(line: Line, context: HoverContext, *, now: int | None = None) -> str:
    """A measured line: its numbers, what they are made of, and who calls it; `now` is where it stands by now."""
    moved = "" if now in {None, line.line} else f"line {line.line} when recorded"
    sections = [
        _head(
            _title(f"{line.function}, line {now or line.line}", moved, context.mark.value),
            line,
            context,
            _cause(line, context.scales),
            _remedy(context.findings),
        ),
        branch_words(
            context.index.below(line.file, line.line), context.index.text_of(line.file, line.line), context.place
        ),
        _table(line, context),
        _critical(line, context),
        _framework(line, context),
        _held(line, context.scales),
        _ranks(line, context.scales),
        _baseline(context),
        _tops("Kernels", line.top_kernels, context.scales),
        _tops("Operators", line.top_operators, context.scales),
        _libraries(line, context.scales),
        _findings(context),
        _calls("Called from", context.index.callers(line.file, line.line), context),
        _calls("Calls", context.index.callees(line.file, line.line), context),
        _remarks(line, context),
        _footer(context),
    ]
    return "\n\n".join(section for section in sections if section)


def function_hover(function: Function, context: HoverContext) -> str:
    """A measured function: all its lines together."""
    kernels, operators = context.index.tops_of(function)
    sections = [
        _head(_title(function.function, context.mark.value), function, context),
        _table(function, context),
        _held(function, context.scales),
        _ranks(function, context.scales),
        _baseline(context),
        _tops("Kernels", kernels, context.scales),
        _tops("Operators", operators, context.scales),
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


def _title(name: str, *remarks: str) -> str:
    said = ", ".join(remark for remark in remarks if remark)
    return f"**{markdown.plain(name)}**" + (f" ({said})" if said else "")


def _head(title: str, numbers: Numbers, context: HoverContext, *lines: str) -> str:
    """What the line costs, why, and what to do: a line each."""
    costs = context.scales.costs
    cost = ""
    if cost_ns(numbers):
        time = quantities.duration(costs.per_step_ns(numbers))
        cost = f": {time} {context.scales.step_words}, {quantities.share(costs.share(numbers))} of the run's cost"
    return "  \n".join([title + cost, *filter(None, lines)])


def _cause(line: Line, scales: Scales) -> str:
    """What holds the line back; without a word, what the user can do to get one."""
    words = spaced(why_words(line, scales.peaks, on_device=scales.is_device))
    word, _, figures = words.partition(": ")
    if word:
        return f"Cause: **{word}**" + (f": {markdown.plain(figures, SENTENCE_LENGTH)}" if figures else "")
    if no_word(line, scales.peaks) == Reason.NO_PEAKS:
        return f"Cause: unknown, {Reason.NO_PEAKS} (setting `deepscope.peaks`)"
    return ""


def _remedy(findings: Sequence[Finding]) -> str:
    """What the finding that saves most says to do."""
    if not findings:
        return ""
    first = max(findings, key=lambda one: one.saving_ns)
    return f"Remedy: {markdown.plain(spaced(first.remedy.text), SENTENCE_LENGTH)}"


def _table(record: Line | Function, context: HoverContext) -> str:
    baseline, before = context.baseline, None
    if baseline is not None:
        old: Line | Function | None
        if isinstance(record, Line):
            old, noise = baseline.line(record.file, record.line), baseline.noise(record.file, record.line)
        else:
            old, noise = baseline.function(record), baseline.function_noise(record)
        before = BaselineNumbers(old, baseline.index.scales, baseline.index.profile.totals, noise)
    return numbers_table(record, context.scales, context.index.profile.totals, before)


def _critical(line: Line, context: HoverContext) -> str:
    """How long the line holds a step up, and what it would save."""
    path = context.index.profile.critical
    rows = context.index.critical(line.file, line.line)
    on_path = sum(row.critical_ns for row in rows)
    if on_path < CRITICAL_SHARE * path.critical_ns or not on_path:
        return ""
    of, what = (" a step", "the step") if context.scales.steps else ("", "the run")
    words = f"On the critical path: {quantities.duration(on_path / path.steps)}{of}"
    saved = [row.would_shorten_ns for row in rows if row.would_shorten_ns is not None]
    if len(saved) != len(rows) or not path.evaluated_steps:
        return words
    shorter = sum(saved) / path.evaluated_steps
    if not shorter:
        return f"{words}; without it {what} would be as long"
    return f"{words}; without it {what} would be {quantities.duration(shorter)} shorter"


def _framework(line: Line, context: HoverContext) -> str:
    """What the framework that this line calls costs between the user's lines."""
    parts = [one for one in context.index.profile.framework if (one.file, one.line) == (line.file, line.line)]
    if not line.framework_ns or not parts:
        return ""
    scales = context.scales
    listed = ", ".join(
        f"{markdown.plain(one.part)} {quantities.duration(scales.per_step(one.cost_ns))}" for one in parts[:TOP_COUNT]
    )
    whole = quantities.duration(scales.per_step(line.framework_ns))
    return f"Of its cost {whole} {scales.step_words} is {markdown.plain(parts[0].framework)}'s own: {listed}"


def _held(numbers: Numbers, scales: Scales) -> str:
    """What the line's memory at the peak is, where the recorder knows it."""
    kinds = peak_kinds(numbers)
    if not kinds or kinds[0][0] == "unknown":
        return ""
    size = quantities.size(numbers.peak_bytes / scales.ranks)
    parts = (
        f"{kind} {quantities.share(part / numbers.peak_bytes)}" if len(kinds) > 1 else kind for kind, part in kinds
    )
    return f"Holds {size} at the peak: {', '.join(parts)}"


def _ranks(record: Line | Function, scales: Scales) -> str:
    spread = record.spread
    if spread is None:
        return ""
    low, median, high = (
        quantities.duration(scales.per_step_of_rank(value))
        for value in (spread.min_ns, spread.median_ns, spread.max_ns)
    )
    slowest = f"max {high} (rank {spread.max_rank}, the slowest)"
    return f"Ranks: min {low} (rank {spread.min_rank}), median {median}, {slowest}"


def _baseline(context: HoverContext) -> str:
    if context.baseline is None:
        return ""
    compared = context.baseline.comparison
    noise = "" if compared is not None and compared.has_intervals else f"; {UNKNOWN}"
    strangers = markdown.plain(spaced(context.baseline.strangers_words))
    words = f"Baseline: {markdown.plain(trace_words(context.baseline.index.profile))}{noise}"
    return f"{words}; {strangers}" if strangers else words


def _tops(title: str, tops: Sequence[Top], scales: Scales) -> str:
    rows = []
    for top in tops[:TOP_COUNT]:
        calls = "1 call" if top.count == 1 else f"{top.count:,} calls"
        rows.append(
            f"- {markdown.code(readable(top.name))} {quantities.duration(scales.per_step(top.device_ns))} ({calls})"
        )
    return _list(title, rows)


def _libraries(line: Line, scales: Scales) -> str:
    rows = [
        f"- {markdown.code(f'{library.module}.{library.function}')} {markdown.code(readable(library.operator))} "
        f"{quantities.duration(scales.per_step(library.device_ns))}; record with "
        f"{markdown.code(f'include=[{library.include!r}]')} to see its lines"
        for library in line.libraries[:TOP_COUNT]
    ]
    return _list("Spent in libraries", rows)


def _findings(context: HoverContext) -> str:
    rows = []
    for finding in context.findings:
        evidence = evidence_words(finding.evidence, context.scales)
        words = f"{spaced(finding.message)}. {spaced(finding.remedy.text)} ({evidence})"
        tried = tried_sentences(finding, context.index.profile.tries)
        text = markdown.plain(words, SENTENCE_LENGTH) + markdown.plain(tried, SENTENCE_LENGTH)
        rows.append(f"- **{markdown.plain(finding.title)}**: {text}")
    return _list("Findings", rows)


def _calls(title: str, calls: Sequence[CallEdge], context: HoverContext) -> str:
    rows = []
    for call in calls[:CALL_COUNT]:
        duration = quantities.duration(context.scales.per_step(call.device_ns or call.cpu_ns))
        word = "" if call.device_ns else " CPU"
        note = " (its backward pass)" if call.is_backward else ""
        place = context.place(call.line.file, call.line.line)
        rows.append(f"- {place} {markdown.plain(call.line.function)}{word} {duration}{note}")
    if len(calls) > CALL_COUNT:
        rows.append(f"- {len(calls) - CALL_COUNT} more")
    return _list(title, rows)


def _remarks(line: Line, context: HoverContext) -> str:
    profile, scales = context.index.profile, context.scales
    is_recorded_by_line = profile.trace.line_source == "scopes"
    is_divided = any(one.shared_ns for one in profile.lines) and not profile.totals.compiled_at_call_ns
    remarks = []
    if not (line.exact or line.fused):
        if line.of_loop:
            remarks.append("The numbers are those of the whole loop: recording each of its lines was too expensive.")
        elif is_recorded_by_line:
            remarks.append(
                "The numbers are those of the whole function: recording each of its lines was too expensive."
            )
        else:
            remarks.append("The trace has no line scopes here: the numbers are those of the whole function.")
    if line.in_compiled_region and not is_divided:
        remarks.append("Inside a compiled region: kernels of the region count for the line that called it.")
    elif line.in_compiled_region:
        remarks.append("Calls compiled code, whose kernels count for the lines that they were made from.")
    if line.shared_ns:
        part = (
            "Its time is"
            if line.shared_ns == line.self_device_ns
            else f"{quantities.duration(scales.per_step(line.shared_ns))} of it is"
        )
        remarks.append(f"{part} parts of kernels {fused_words(line, 5)}, divided by their operations.")
    return " ".join(remarks)


def _footer(context: HoverContext) -> str:
    words = trace_words(context.index.profile)
    if context.text_words:
        words += f"; {context.text_words}"
    return f"Trace: {markdown.plain(words, SENTENCE_LENGTH)}"


def _list(title: str, rows: Sequence[str]) -> str:
    return "\n".join([f"{title}:", "", *rows]) if rows else ""


LEAST_SHARE = 0.5
"""Of the line's time: the way down ends before a node that holds less."""
NAME_LENGTH = 60
ARROW = " \N{RIGHTWARDS ARROW} "


def branch_words(line: Node, text: str, place: Callable[[str, int], str]) -> str:
    """The way down that holds most of a line's time, and its share; "" where it says no more than the line's text.

    Of each kind the innermost node stands for those around it, so that it is one line whatever the depth; layers that
    are alike are named besides, with their count: `encoder.layers.*` and in it `mlp`, not each module on the way.

    Args:
        line: the line's tree, layers that are alike made one.
        text: the line as it ran.
        place: a file and a line as Markdown.
    """
    branch = [node for node in main_branch(line) if node.total_device_ns >= LEAST_SHARE * line.total_device_ns]
    innermost = {node.kind: number for number, node in enumerate(branch)}
    alike = [number for number, node in enumerate(branch) if node.layers > 1]
    shown = [branch[number] for number in sorted({*innermost.values(), *alike[:1], *alike[-1:]})]
    if not shown or (len(shown) == 1 and _is_named(shown[0], text)):
        return ""
    share = quantities.share(branch[-1].total_device_ns / line.total_device_ns)
    return f"{ARROW.join(_words(node, _above(node, shown), place) for node in shown)}: {share} of it"


def _above(node: Node, shown: Sequence[Node]) -> str:
    """The path of the module that is shown above a module; "" where none is."""
    above = [one.name for one in shown if node.kind == one.kind == "module" and node.name.startswith(f"{one.name}.")]
    return above[-1] if above else ""


def _words(node: Node, above: str, place: Callable[[str, int], str]) -> str:
    if node.kind == "library" and node.line:
        return place(node.file, node.line)
    name = node.name if node.kind == "line" else place_name(node.kind, _below(above, node.name))
    short = name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"
    return markdown.code(short) + (f" {TIMES}{node.layers}" if node.layers > 1 else "")


def _below(above: str, name: str) -> str:
    """A module's name within one above it: `mlp` for `h.*.mlp` in `h.*`, `mlp.*` for `h.*.mlp.*` in `h.*.mlp`."""
    rest, last = name[len(above) + 1 :], above.rsplit(".", 1)[-1]
    if not above or rest == last == "*":
        return name
    return f"{last}.*" if rest == "*" else rest


def _is_named(node: Node, text: str) -> bool:
    """Whether a text has a node's own word: `relu` of `aten::relu_`."""
    word = re.split(r"[:.]", node.name)[-1].strip("_")
    return re.search(rf"\b{re.escape(word)}_?\b", text) is not None
