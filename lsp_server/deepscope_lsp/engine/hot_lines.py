"""The hottest lines, functions, files and modules of a profile, and the lines of a baseline that are gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec.structs import replace

from deepscope.records import Line, Module, Numbers, cost_ns
from deepscope.records.source_files import short_path
from deepscope_lsp.answers import (
    HOT_METRICS,
    HotAmount,
    HotGroup,
    HotLine,
    HotLines,
    HotMetric,
    HotModule,
    HotModules,
    VanishedLine,
)
from deepscope_lsp.engine.baseline import Baseline
from deepscope_lsp.engine.binding import FileHere, locate_in
from deepscope_lsp.engine.path_map import Locate, place_fields
from deepscope_lsp.engine.profile_index import ProfileIndex, Scales
from deepscope_lsp.engine.wording import quantities
from deepscope_lsp.engine.wording.annotation import annotate, beside_work_ns, total_words

VANISHED_SHARE = 0.01
"""Of the baseline's cost."""
VANISHED_LIMIT = 50
CHANGE_SHARE = 0.005
"""Of the lines' cost: smaller changes since the baseline are not spoken of."""


_KNOWN: WeakKeyDictionary[ProfileIndex, HotLines] = WeakKeyDictionary()
"""All lines of a profile in words, without places: they are asked for after every pause in typing."""


def hot_lines(
    index: ProfileIndex,
    here: Callable[[str], FileHere | None],
    *,
    limit: int,
    files: set[str] | None = None,
    baseline: Baseline | None = None,
) -> HotLines:
    """The lines that cost most first; of `files` alone where given.

    Lines that have vanished since the baseline are listed only where all files are asked for.
    """
    if files is not None:
        answer = _all_lines(index, [line for line in index.profile.lines if line.file in files])
    else:
        answer = _KNOWN.get(index) or _KNOWN.setdefault(index, _all_lines(index, index.profile.lines))
    vanished = [] if baseline is None or files is not None else _vanished_lines(index, locate_in(here), baseline)
    least_ns = CHANGE_SHARE * sum(line.per_step_ns for line in answer.lines)
    return replace(
        answer,
        lines=[_at(line, here(line.file), baseline, least_ns) for line in answer.lines[:limit]],
        vanished=vanished,
        vanished_words=quantities.difference(-sum(line.per_step_ns for line in vanished)),
    )


def hot_modules(index: ProfileIndex, *, limit: int) -> HotModules:
    """The modules with the most device time, with what is in them."""
    modules = sorted(index.profile.modules, key=lambda one: (-one.total_device_ns, -one.total_cpu_ns))
    amounts = _Amounts(modules, index.scales, with_calls=True)
    return HotModules(
        metric=index.profile.metric,
        step_words=index.scales.step_words,
        modules=[_module(module, index, amounts) for module in modules[:limit]],
    )


def numbers_of(record: Numbers) -> dict[str, int]:
    """The numbers of a record that are not 0, by their names in docs/report.md."""
    numbers = msgspec.to_builtins(record)
    return {name: value for name, value in numbers.items() if type(value) is int and value and name != "line"}


def _at(line: HotLine, here: FileHere | None, baseline: Baseline | None, least_ns: float) -> HotLine:
    """A line with its place in its file as that is here, and its change since the baseline."""
    changes = {} if baseline is None else _changes(line, baseline, least_ns)
    if here is not None:
        changes |= {"uri": here.uri, "current_line": here.near(line.line), "standing": here.standing(line.line)}
    return replace(line, **changes)


def _changes(line: HotLine, baseline: Baseline, least_ns: float) -> dict[str, Any]:
    """The fields of a line that say how it has changed; a change below `least_ns` is not spoken of."""
    old_ns, new_ns = baseline.cost_per_step_ns(line.file, line.line), line.per_step_ns
    difference = quantities.difference(new_ns - old_ns)
    noise = baseline.noise(line.file, line.line)
    is_small = abs(new_ns - old_ns) < least_ns
    words = {"within": f"{difference}, within noise", "unknown": f"{difference}, of unknown noise"}
    return {
        "baseline_ns": old_ns,
        "baseline_words": f"{quantities.duration(old_ns)}, now {words.get(noise, difference)}",
        "change_words": "" if is_small or noise == "within" else "new" if not old_ns and new_ns else difference,
    }


def _all_lines(index: ProfileIndex, lines: list[Line]) -> HotLines:
    """Lines by themselves and in groups, the hottest first; where they are here is left open."""
    scales, root = index.scales, index.profile.trace.project_root
    ranked, amounts = scales.costs.ranked(lines), _Amounts(lines, scales)
    functions: dict[tuple[str, str], list[Line]] = defaultdict(list)
    files: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in ranked:
        functions[line.file, line.function].append(line)
        files[line.file, ""].append(line)

    def groups(by_name: dict[tuple[str, str], list[Line]]) -> list[HotGroup]:
        return [
            HotGroup(function=name, file=file, short_file=short_path(file, root), amounts=amounts.of(*members))
            for (file, name), members in by_name.items()
        ]

    return HotLines(
        metric=index.profile.metric,
        step_words=scales.step_words,
        lines=[_hot_line(line, scales, root, amounts) for line in ranked],
        functions=groups(functions),
        files=groups(files),
        vanished=[],
        vanished_words="",
    )


def _hot_line(line: Line, scales: Scales, root: str, amounts: _Amounts) -> HotLine:
    return HotLine(
        **place_fields(line, _nowhere),
        short_file=short_path(line.file, root),
        text=(line.text or "").strip(),
        label=annotate(line, scales).label,
        standing="same",
        share=scales.costs.share(line),
        per_step_ns=scales.costs.per_step_ns(line),
        baseline_ns=None,
        baseline_words="",
        change_words="",
        whole_words=_whole_words(line, on_device=scales.is_device),
        exact=line.exact or line.fused,
        amounts=amounts.of(line),
        numbers=numbers_of(line),
    )


def _nowhere(_file: str, _line: int) -> None:
    return None


def _vanished_lines(index: ProfileIndex, locate: Locate, baseline: Baseline) -> list[VanishedLine]:
    """Lines of the baseline that had a cost and are gone, or have none today; the largest first."""
    scales = baseline.index.scales
    answers = []
    for line in baseline.vanished()[:VANISHED_LIMIT]:
        share, per_step_ns = scales.costs.share(line), scales.costs.per_step_ns(line)
        if share < VANISHED_SHARE:
            break
        file, number = baseline.place_now(line)
        time = quantities.duration(per_step_ns)
        answers.append(
            VanishedLine(
                **place_fields(line, locate, file=file, number=number),
                short_file=short_path(file, index.profile.trace.project_root),
                text=(line.text or "").strip(),
                share=share,
                per_step_ns=per_step_ns,
                change_words=quantities.difference(-per_step_ns),
                time_words=f"{time} {scales.step_words} in the baseline ({quantities.share(share)})",
            )
        )
    return answers


def _whole_words(line: Line, *, on_device: bool) -> str:
    times = [
        ("cost", cost_ns(line)),
        ("device" if on_device else "operators", line.self_device_ns),
        ("of it backward", line.backward_device_ns),
        ("device idle meanwhile" if on_device else "Python", beside_work_ns(line)),
        ("outside the steps", line.outside_ns),
        ("with what it calls", line.total_device_ns),
        ("CPU", line.self_cpu_ns),
        ("waiting for the device", line.wait_ns),
    ]
    words = [f"{name} {quantities.duration(duration_ns)}" for name, duration_ns in times if duration_ns]
    if line.bytes_allocated:
        words.append(f"allocated {quantities.size(line.bytes_allocated)}")
    words += [f"{name} {count}" for name, count in (("launches", line.launches), ("entered", line.calls)) if count]
    return ", ".join(words)


def _module(module: Module, index: ProfileIndex, amounts: _Amounts) -> HotModule:
    own_ns = index.scales.per_step(module.self_in_steps_ns)
    return HotModule(
        path=module.path,
        class_name=module.class_name,
        label=total_words(module, index.scales),
        share=index.scales.share(module.total_device_ns),
        own_words=f"own {quantities.duration(own_ns)}" if own_ns else "",
        amounts=amounts.of(module),
        numbers=numbers_of(module),
    )


_FIELDS: dict[HotMetric, str] = {
    "device": "self_device_ns",
    "cpu": "self_cpu_ns",
    "wait": "wait_ns",
    "idle": "idle_ns",
    "memory": "bytes_allocated",
}


class _Amounts:
    """Makes the amounts of records: each a part of what all of them have together.

    With `with_calls` device time is that of all that is called, too.
    """

    def __init__(self, records: Sequence[Numbers], scales: Scales, *, with_calls: bool = False) -> None:
        self._scales = scales
        self._with_calls = with_calls
        self._wholes = {metric: self._sum(records, metric) for metric in HOT_METRICS}

    def of(self, *records: Numbers) -> dict[str, HotAmount]:
        """The amounts of some records together, by metric; those that are 0 are left out."""
        found: dict[str, HotAmount] = {}
        for metric in HOT_METRICS:
            if value := self._sum(records, metric):
                share = self._share(value, metric)
                per_step = self._scales.per_step(value - sum(self._outside_ns(one, metric) for one in records))
                words = quantities.number(per_step, "bytes" if metric == "memory" else "time")
                found[metric] = HotAmount(share=share, words=f"{quantities.share(share)} · {words}")
        return found

    def _sum(self, records: Iterable[Numbers], metric: HotMetric) -> int:
        if metric == "cost":
            return sum(one.cost_ns - one.framework_ns for one in records)
        field = "total_device_ns" if metric == "device" and self._with_calls else _FIELDS[metric]
        return sum(getattr(one, field) for one in records)

    def _outside_ns(self, numbers: Numbers, metric: HotMetric) -> int:
        """The part of a cost or of device time that lies outside the steps; of the other metrics none is known."""
        if metric == "cost":
            return numbers.outside_ns + numbers.python_outside_ns
        if metric != "device":
            return 0
        return numbers.total_outside_ns if self._with_calls else numbers.outside_ns

    def _share(self, value: int, metric: HotMetric) -> float:
        """Of a cost or of work a part of the run's: some of it may have reached no line."""
        if metric == "cost":
            return self._scales.costs.share_of(value)
        return self._scales.share(value) if metric == "device" else value / self._wholes[metric]
