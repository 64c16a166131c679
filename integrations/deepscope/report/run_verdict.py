"""One sentence on the run: what most of its time goes to, how much that is, and at which line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from deepscope.printable import printable
from deepscope.quantities import share_text, time_text
from deepscope.records import Costs, Line, MemoryFailure, Profile, cost_ns, key_figures
from deepscope.records.operators import NO_OPERATOR
from deepscope.records.source_files import short_place
from deepscope.report.counters import busy_ratio
from deepscope.report.findings import saving_word, slowed_words, was_busy
from deepscope.report.line_table import without_framework
from deepscope.report.step_table import serving_sentence
from deepscope.report.whole_run import (
    beside_steps,
    counted_share,
    long_steps_share,
    long_steps_words,
    pause_of,
    repeated_data_words,
    slowing_words,
    waits_words,
)

RunCause = Literal[
    "out of memory",
    "data",
    "communication",
    "device idle",
    "device busy",
    "operators",
    "Python",
    "evaluation",
    "checkpoint",
    "logging",
    "compiling",
    "outside steps",
    "unknown",
]

_BUSY = 0.8
"""A device that works for this share of the time is what the run is about."""
_RIVAL = 0.2
"""The second cause is named from this share of the time on; a device that works, from half of the first one's on."""
_CHEAP = 0.05
"""A finding that could save this share of the time is worth a look."""
_ADVISED = 0.2
"""A finding that could save this share is named in a sentence that names another line."""
_LEAST = 0.1
"""A line with less of what the sentence is about is not named."""
_NEARLY_ALL = 0.9
"""A line with this share of the cost, as one that calls a trainer, tells little by itself."""
_LONGEST = 60
"""Characters of a name."""
_MOST_OF_RUN = 0.4
"""What takes this part of the run beside the recorded steps is named first."""
_MOST = 0.25
"""A module, an operator or a kernel with less of the device's time is not named."""


class RunVerdict(msgspec.Struct):
    """What most of the time goes to."""

    cause: RunCause
    share: float | None
    """Of the steps' time, 0 to 1; without steps of the whole; None for what no share tells."""
    sentence: str
    """With the place; printable."""
    file: str = ""
    """Of the line that has most of it; "" where none is known."""
    line: int = 0


class _Candidate(NamedTuple):
    cause: RunCause
    share: float


def run_verdict(profile: Profile) -> RunVerdict:
    """The verdict on a run: on its steps and, where much of it goes elsewhere, on that, the larger one first."""
    steps, run = _of_steps(profile), profile.whole_run
    if profile.serving and profile.memory.failure is None and profile.part_of is None:
        steps = replace(steps, sentence=f"{serving_sentence(profile)} {steps.sentence}")
    if run is None or profile.memory.failure is not None or profile.part_of is not None:
        return steps
    busy = busy_ratio(profile.trace)
    if slowing := slowing_words(run, busy):
        steps = replace(steps, sentence=f"{steps.sentence} {slowing}")
    audited = profile.audit.steps if profile.audit else 0
    root = profile.trace.project_root
    if rare := long_steps_words(run, profile.steps, audited, busy, root):
        is_most = long_steps_share(run) >= _MOST_OF_RUN
        steps = replace(steps, sentence=f"{rare} {steps.sentence}" if is_most else f"{steps.sentence} {rare}")
    rest = printable(" ".join(filter(None, (waits_words(run, root), repeated_data_words(run)))))
    beside = beside_steps(run, root)
    if beside is None:
        return replace(steps, sentence=f"{steps.sentence} {rest}") if rest else steps
    (part, share), words = beside
    words = f"{words} {rest}" if rest else words
    usual = max(run.share("steps", "data") - run.compiling_share, 0.0)  # the window's are steps that compile nothing
    if steps.share is not None and steps.share * usual / counted_share(run) >= share:
        return replace(steps, sentence=f"{steps.sentence} {words}")
    pause = pause_of(run, part)
    file, line = (pause.file, pause.line) if pause is not None else ("", 0)
    cause: RunCause = "outside steps" if part == "rest" else part
    return RunVerdict(cause, share, f"{words} {steps.sentence}", file, line)


def _of_steps(profile: Profile) -> RunVerdict:
    if profile.memory.failure is not None:
        return _of_failure(profile.memory.failure, profile)
    if profile.part_of is not None:
        return _of_part(profile)
    parts = _parts(profile)
    whole = sum(parts.values())
    if not whole:
        return RunVerdict("unknown", None, "Cannot tell what the time goes to: this trace has no work.")
    first, *others = _candidates(profile, parts, whole)
    if (slowed := slowed_words(profile)) and not _is_bounded(profile, first):
        return RunVerdict("unknown", None, slowed)
    of_busy = max(_RIVAL, first.share / 2)
    rival = next((one for one in others if one.share >= (of_busy if one.cause == "device busy" else _RIVAL)), None)
    first = _as_figure(first, profile)
    line = _line_of(first, profile)
    words = _words(first, line, profile)
    if rival is not None:
        words += f"; {_rival_words(rival, profile, beside=first.cause)}"
    words += _what_is_missing(profile) if line is None else ""
    words += _advice_elsewhere(words, line, profile) if first.cause in _ON_CPU else ""
    if first.cause == "device busy" and not any(one.saving_ns >= _CHEAP * whole for one in profile.findings):
        words += ": nothing cheap to gain was found" if line is not None else ""
    if was_busy(profile):
        words += "; times are rough, for other programs had the cores"
    file, number = (line.file, line.line) if line is not None else ("", 0)
    return RunVerdict(first.cause, first.share, printable(f"{words}."), file, number)


_ON_CPU: frozenset[RunCause] = frozenset({"operators", "Python"})


def _advice_elsewhere(words: str, line: Line | None, profile: Profile) -> str:
    """The finding that could save most, if that is much and its place is not in the sentence yet."""
    found = max(profile.findings, key=lambda one: one.saving_ns, default=None)
    if found is None or not found.file or found.saving_ns < _ADVISED * profile.totals.wall_ns:
        return ""
    place = short_place(found.file, found.line, profile.trace.project_root)
    if (line is not None and (found.file, found.line) == (line.file, line.line)) or place in words:
        return ""
    share = share_text(found.saving_ns, profile.totals.wall_ns)
    return f"; {saving_word(found)} {share} could be saved at {place} ({found.code})"


_WITHOUT_WORK = ("data loader", "runtime", "CPU", "other")
"""The parts of the steps' time in which no device works; beside one, recording added to these."""


def _parts(profile: Profile) -> dict[str, int]:
    """Where the steps' time goes; each part without a device's work has its share of what recording added."""
    parts = {row.name: row.time_ns for row in profile.overview if row.section == "step"}
    if profile.metric != "device":
        return parts
    idle_ns = sum(parts.get(name, 0) for name in _WITHOUT_WORK)
    kept = max(1 - profile.totals.added_ns / idle_ns, 0.0) if idle_ns else 1.0
    return {name: round(ns * kept) if name in _WITHOUT_WORK else ns for name, ns in parts.items()}


def _of_failure(failure: MemoryFailure, profile: Profile) -> RunVerdict:
    if not failure.lines or not failure.lines[0].file:
        return RunVerdict("out of memory", None, printable(f"Memory ran out on {failure.device}."))
    file, number = failure.lines[0].file, failure.lines[0].line
    place = short_place(file, number, profile.trace.project_root)
    sentence = f"Memory ran out on {failure.device}; the line that holds most is {place}."
    return RunVerdict("out of memory", None, printable(sentence), file, number)


def _of_part(profile: Profile) -> RunVerdict:
    """What a part costs; what the run waits for is known of the whole alone."""
    each = " of each step" if profile.totals.steps > 1 else ""
    words = f"This part takes {time_text(Costs.of(profile).per_step(profile.totals.wall_ns)) or '0'}{each}"
    line = _line_of(_Candidate("operators", 0.0), profile)
    if line is None:
        return RunVerdict("unknown", None, f"{words}.")
    share = Costs.of(profile).share(line)
    sentence = f"{words}; {share_text(share, 1)} of its cost is at {_place(line, profile)}."
    return RunVerdict("unknown", share, printable(sentence), line.file, line.line)


def _candidates(profile: Profile, parts: dict[str, int], whole: int) -> Sequence[_Candidate]:
    """The causes, by what they take; a device that nearly always works is the first."""

    def share(*names: str) -> float:
        return sum(parts.get(name, 0) for name in names) / whole

    waits = [_Candidate("data", share("data loader")), _Candidate("communication", share("communication"))]
    if profile.metric != "device":
        cause: RunCause = "operators"
        line = _line_of(_Candidate(cause, 0.0), profile)
        if line is not None and line.python_ns - line.framework_ns > cost_ns(line) / 2:
            cause = "Python"
        waits.append(_Candidate(cause, share("CPU", "runtime", "other", "kernel", "memcpy", "memset")))
        return sorted(waits, key=lambda one: -one.share)
    works = _Candidate("device busy", share("kernel", "memcpy", "memset"))
    waits.append(_Candidate("device idle", share("runtime", "CPU", "other")))
    waits.sort(key=lambda one: -one.share)
    return [works, *waits] if works.share >= _BUSY or works.share > 2 * waits[0].share else [*waits, works]


_NEARLY_PLAIN = 1.25
"""Steps, less what recording added, of so many times the length of plain ones leave little room for wrong times."""


def _is_bounded(profile: Profile, one: _Candidate) -> bool:
    """Whether plain steps tell how much lines that recording slowed have together: how long a step is, and so its wait
    for data, or that what was taken off these lines was about right.
    """
    plain = profile.trace.recording.get("plain_steps") if profile.trace.recording else None
    if not plain:
        return False
    step_ns = profile.totals.wall_ns / max(profile.totals.steps, 1) / max(profile.totals.ranks, 1)
    is_near = profile.totals.steps > 0 and step_ns <= _NEARLY_PLAIN * plain["wall"]["mean_ns"]
    return is_near or (one.cause == "data" and bool(profile.totals.added_ns))


def _as_figure(one: _Candidate, profile: Profile) -> _Candidate:
    """Busy and idle as every face has them: waiting for data is idle time, too, and communication is work."""
    run = key_figures(profile)
    share = {"device busy": run.busy_share, "device idle": run.idle_share}.get(one.cause)
    return one if share is None else one._replace(share=share)


def _of(profile: Profile) -> str:
    return "of each step" if profile.totals.steps > 1 else "of the step" if profile.totals.steps else "of the time"


def _words(one: _Candidate, line: Line | None, profile: Profile) -> str:
    share = f"{share_text(one.share, 1) or '0%'} {_of(profile)}"
    place = "" if line is None else _place(line, profile)
    estimate = "; an estimate, for recording slowed this line" if line is not None and line.slowed else ""
    if one.cause == "data":
        return f"Waits for data: {share}" + (f", from {place}{estimate}" if place else "")
    if one.cause == "communication":
        return f"Waits for communication: {share}" + (f", at {place}" if place else "")
    if one.cause == "device idle":
        return f"The device is idle for {share}" + ("" if line is None else f": {_why_idle(line)}, at {place}")
    if one.cause == "device busy":
        verdict = "" if line is None else f", {line.verdict or 'most of all'} at {place}"
        return f"The device is busy for {share}{verdict}"
    if line is None:
        return f"Runs on the CPU: operators and Python take {share}"
    part = Costs.of(profile).share(line)
    kind = "Python" if one.cause == "Python" else "operators"
    if kind == "operators" and (part or 0.0) >= _NEARLY_ALL:
        kind += _most_of_them(profile)
    return f"Runs on the CPU: {share_text(part, 1)} of the cost is at {place}, mostly {kind}{estimate}"


def _most_of_them(profile: Profile) -> str:
    """The operator that most of the operators' time goes to; "" for none."""
    whole_ns = sum(one.self_device_ns for one in profile.operators)
    first = max(profile.operators, key=lambda one: one.self_device_ns, default=None)
    if first is None or 2 * first.self_device_ns < whole_ns or first.name in {"", NO_OPERATOR}:
        return ""
    words = f", most of them {first.name[:_LONGEST]} ({share_text(first.self_device_ns, whole_ns)})"
    if profile.trace.stage != "validate" or first.name != "aten::cat":
        return words
    settings = profile.trace.recording.get("settings")
    frameworks = settings.get("frameworks") if isinstance(settings, dict) else ()
    is_transformers = isinstance(frameworks, list) and "transformers.Trainer" in frameworks
    option = " (of transformers' Trainer: `preprocess_logits_for_metrics=…`)" if is_transformers else ""
    return f"{words}: what the model returns is gathered; keep what metrics need of it{option}"


def _rival_words(one: _Candidate, profile: Profile, *, beside: RunCause) -> str:
    line = _line_of(one, profile)
    is_apart = one.cause == "device busy" and beside == "communication"
    one = one if is_apart else _as_figure(one, profile)
    what = {
        "data": "it waits for data for",
        "communication": "it waits for communication for",
        "device idle": "the device is idle for",
        "device busy": "the device computes for" if is_apart else "the device is busy for",
    }.get(one.cause, "operators and Python take")
    return f"{what} {share_text(one.share, 1)}" + ("" if line is None else f", at {_place(line, profile)}")


def _place(line: Line, profile: Profile) -> str:
    return short_place(line.file, line.line, profile.trace.project_root)


_IDLE: dict[str, str] = {
    "launch_ns": "launching many small kernels",
    "host_ns": "Python and the CPU's own work between kernels",
    "waiting_ns": "the CPU waits for the device first",
}


def _why_idle(line: Line) -> str:
    return _IDLE[max(_IDLE, key=lambda name: getattr(line.why, name))]


def _line_of(one: _Candidate, profile: Profile) -> Line | None:
    """The line that has most of it; None where none has a part of it that is worth naming.

    What is loaded from is what the advice on loading names.
    """
    if one.cause == "data" and (advised := _line_of_finding("DS003", profile)) is not None:
        return advised
    loading = _loading_ns(profile)
    of: dict[str, Callable[[Line], int]] = {
        "data": loading,
        "communication": lambda line: line.why.communication_ns,
        "device idle": lambda line: without_framework(line, profile).idle_ns - line.why.data_ns,
        "device busy": lambda line: line.self_device_ns,
    }
    value = of.get(one.cause)
    if value is None:
        own = max(Costs.ranked(profile.lines), key=lambda line: cost_ns(line) - loading(line), default=None)
        return own if own is not None and cost_ns(own) > loading(own) else None
    best = max(profile.lines, key=value, default=None)
    return best if best is not None and value(best) > _LEAST * one.share * profile.totals.wall_ns else None


def _line_of_finding(code: str, profile: Profile) -> Line | None:
    """The line of the finding that saves most of those with this code."""
    found = max((one for one in profile.findings if one.code == code), key=lambda one: one.saving_ns, default=None)
    if found is None or not found.file:
        return None
    return next((line for line in profile.lines if (line.file, line.line) == (found.file, found.line)), None)


def _loading_ns(profile: Profile) -> Callable[[Line], int]:
    """How long each line loads data while nothing else goes on: the device idle or, without one, on the training
    thread."""
    if profile.metric == "device":
        return lambda line: line.why.data_ns
    of = {(row.file, row.line, row.function, row.exact): row.data_ns for row in profile.critical.lines}
    return lambda line: of.get((line.file, line.line, line.function, line.exact), 0)


def _what_is_missing(profile: Profile) -> str:
    """What else is known where no line has most of it."""
    largest = next(iter(Costs.ranked(profile.lines)), None)
    if largest is None:
        return f"; at which line is not known: the trace has no lines{_largest_name(profile)}"
    share = share_text(Costs.of(profile).share(largest), 1)
    return f"; the line that costs most is {_place(largest, profile)} ({share})" if share else ""


def _largest_name(profile: Profile) -> str:
    """The module that has most of the work, else the operator, else the kernel; "" where none has much."""
    # Of a server annotations are left out (their class is their path): its steps are named already.
    modules = [one for one in profile.modules if one.class_name != one.path or not profile.serving]
    kinds: tuple[tuple[str, list[tuple[str, int]]], ...] = (
        ("module", [(one.path, one.self_device_ns) for one in modules]),
        ("operator", [(one.name, one.self_device_ns) for one in profile.operators]),
        ("kernel", [(one.name, one.device_ns) for one in profile.kernels]),
    )
    for kind, rows in kinds:
        whole = sum(time_ns for _, time_ns in rows)
        name, time_ns = max(rows, key=lambda row: row[1], default=("", 0))
        if time_ns > _MOST * whole and name not in {"", NO_OPERATOR}:
            return f"; the {kind} with most of the work is {name[:_LONGEST]} ({share_text(time_ns, whole)})"
    return ""
