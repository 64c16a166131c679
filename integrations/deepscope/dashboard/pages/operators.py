"""The pages of operators, of kernels and of modules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal

from deepscope.analysis.verdict import limit_of
from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import AtLine, Choice, PageAnswer, Table, key_of, place_words, table_of, word
from deepscope.dashboard.pages.calls import NamedTime, OwnerLine, kernels_below, lines_with
from deepscope.errors import OptionError
from deepscope.printable import printable
from deepscope.records import Detail, Kernel, KernelKind, Operator, OperatorInDetail, Peaks, Profile, Why
from deepscope.report.event_names import readable, shapes_text
from deepscope.report.line_verdict import no_word, why_words
from deepscope.report.module_tree import Branch, folded_modules, module_columns, plain_modules
from deepscope.report.operator_columns import kernel_columns, kind_columns, operator_columns
from deepscope.report.operator_ranking import RankedRow, RankingQuery, ranking
from deepscope.report.table_column import ColumnOf
from deepscope.trace.kinds import operator_kind
from deepscope.trace.names import parse_call_stack

Grouping = Literal["name", "shapes", "stacks", "type"]
_DETAILS: dict[Grouping, tuple[Detail, ...]] = {
    "name": (),
    "shapes": ("shapes",),
    "stacks": ("stacks",),
    "type": ("shapes",),
}
"""What a profile needs for each; `type` takes the sums that count no call twice."""


class OperatorsAsked(Choice, kw_only=True, frozen=True):
    """Which operators, and what makes a row."""

    by: Grouping = "name"


class Operators(PageAnswer):
    """A row for each operator, each of its shapes or stacks, or each kind."""

    by: Grouping
    table: Table


def operators(library: Library, question: OperatorsAsked) -> Operators:
    """The operators, those first in which the device works longest."""
    profile = operator_profile(library, question)
    rows = operator_rows(profile, question.by)
    return Operators(by=question.by, table=operator_table(profile, question.by, rows))


def operator_profile(library: Library, question: OperatorsAsked) -> Profile:
    """The profile that has the rows that are asked for.

    Raises:
        NotYetError, TraceError, OptionError: as `Library.profile`.
    """
    return library.profile(question, details=_DETAILS[question.by])


def operator_rows(profile: Profile, by: Grouping) -> Sequence[Operator | RankedRow]:
    """The rows, in the order of the report."""
    if by == "type":
        return ranking(profile, RankingQuery(by="type")).rows
    rows: Sequence[Operator] = profile.operators if by == "name" else profile.operators_in_detail
    return sorted(rows, key=lambda row: -row.self_device_ns)


def operator_key(row: Operator | RankedRow) -> str:
    """The word of an address for a row."""
    if isinstance(row, OperatorInDetail):
        return key_of(row.name, row.in_shapes, row.stack)
    return key_of(row.name)


def named_operator(row: Operator) -> NamedTime:
    """An operator with its own device time."""
    return NamedTime(key=operator_key(row), label=word(readable(row.name)), time_ns=row.self_device_ns, calls=row.calls)


def operator_table(profile: Profile, by: Grouping, rows: Sequence[Operator | RankedRow]) -> Table:
    """The rows as a table."""
    columns = kind_columns(profile) if by == "type" else operator_columns(profile, _DETAILS[by])
    return table_of(f"operators_{by}", "Operators", columns, rows, keys=operator_key)


_LONGEST = 4000


class Kernels(PageAnswer):
    """A row for each kernel, copy, fill and collective."""

    table: Table


class KernelAsked(Choice, kw_only=True, frozen=True):
    """Which row of the kernels."""

    key: str


class KernelDetails(PageAnswer):
    """What is known of a kernel beside the numbers of its row."""

    name: str
    """As the trace has it."""
    kind: KernelKind
    operator: NamedTime | None
    """The operator that launches most of it; its time and calls are the operator's own."""
    lines: list[OwnerLine]


def kernels(library: Library, question: Choice) -> Kernels:
    """The kernels, those first that take longest."""
    profile = library.profile(question)
    rows = sorted(profile.kernels, key=lambda row: -row.device_ns)
    return Kernels(table=table_of("kernels", "Kernels", kernel_columns(profile), rows, keys=kernel_key))


def kernel(library: Library, question: KernelAsked) -> KernelDetails:
    """One kernel in detail."""
    profile = library.profile(question)
    row = next((one for one in profile.kernels if kernel_key(one) == question.key), None)
    if row is None:
        raise OptionError("key", question.key, "no such kernel is here")
    launcher = next((one for one in profile.operators if one.name == row.operator), None)
    return KernelDetails(
        name=printable(row.name)[:_LONGEST],
        kind=row.kind,
        operator=named_operator(launcher) if launcher is not None else None,
        lines=lines_with(profile, "kernel", row.name),
    )


def kernel_key(row: Kernel) -> str:
    """The word of an address for a row."""
    return key_of(row.name, row.kind)


_FRAMES = 60


class OperatorAsked(OperatorsAsked, kw_only=True, frozen=True):
    """Which row of the operators."""

    key: str


class Cause(PageAnswer):
    """A part of a time, by what holds it back."""

    name: str
    time_ns: int


class Spot(AtLine):
    """A line of a stack."""


class OperatorDetails(PageAnswer):
    """What is known of an operator beside the numbers of its row."""

    name: str
    """As the trace has it."""
    why: str = ""
    """What holds its work back, in words; or why that is not known."""
    causes: list[Cause] = []
    """They sum to its own time, or where its FLOPs are of operators that it calls, to the time of these."""
    shapes: str = ""
    out_shapes: str = ""
    stack: list[Spot] = []
    """The innermost line first."""
    kernels: list[NamedTime] = []
    """Of an operator by name; so are the lines."""
    lines: list[OwnerLine] = []
    operators: list[NamedTime] = []
    """Of a kind."""


class OperatorVariants(PageAnswer):
    """An operator's rows by shapes, or by stacks."""

    table: Table


def operator(library: Library, question: OperatorAsked) -> OperatorDetails:
    """One row of the operators in detail."""
    profile = operator_profile(library, question)
    for row in operator_rows(profile, question.by):
        if operator_key(row) == question.key:
            return _details(profile, row) if isinstance(row, Operator) else _kind(profile, row.name)
    raise OptionError("key", question.key, "no such operator is here")


def operator_variants(library: Library, question: OperatorAsked) -> OperatorVariants:
    """The rows of one operator by shapes or stacks (`by`); `key` is that of its row by name."""
    profile = operator_profile(library, question)
    rows = [row for row in operator_rows(profile, question.by) if key_of(row.name) == question.key]
    return OperatorVariants(table=operator_table(profile, question.by, rows))


def _details(profile: Profile, row: Operator) -> OperatorDetails:
    device = profile.metric == "device"
    detail = row if isinstance(row, OperatorInDetail) else None
    return OperatorDetails(
        name=printable(row.name)[:_LONGEST],
        why=why_words(row, profile.peaks, on_device=device) or no_word(row, profile.peaks),
        causes=[Cause(name=name, time_ns=ns) for name, ns in causes_of(row.why, profile.peaks, device=device) if ns],
        shapes=shapes_text(detail.in_shapes, detail.dtypes)[:_LONGEST] if detail else "",
        out_shapes=shapes_text(detail.out_shapes)[:_LONGEST] if detail else "",
        stack=_stack(detail.stack, profile) if detail else [],
        kernels=kernels_below(profile, row.name) if device and detail is None else [],
        lines=lines_with(profile, "operator", row.name) if detail is None else [],
    )


def _kind(profile: Profile, kind: str) -> OperatorDetails:
    members = [one for one in profile.operators if operator_kind(one.name) == kind]
    return OperatorDetails(
        name=word(kind),
        operators=[named_operator(one) for one in sorted(members, key=lambda one: -one.self_device_ns)],
    )


def causes_of(why: Why, peaks: Peaks | None, *, device: bool) -> Iterator[tuple[str, int]]:
    """The parts of a cost in words; they sum to it."""
    rated = rated_work(why, peaks)
    yield "compute", rated["compute-bound"]
    yield "memory", rated["memory-bound"]
    yield "work whose limit is not known", rated[""] + why.unknown_ns
    yield "short kernels" if device else "dispatch", why.short_ns
    yield "communication", why.communication_ns
    yield "copies", why.copies_ns
    yield "hidden by other work", why.hidden_ns
    yield "idle, the CPU waits" if device else "Python blocked", why.waiting_ns
    yield "idle, data is loaded" if device else "waiting for the data loader", why.data_ns
    yield "waiting for a core", why.core_wait_ns
    yield "idle, work is launched", why.launch_ns
    yield "idle, the CPU does other work" if device else "Python", why.host_ns


def rated_work(why: Why, peaks: Peaks | None) -> dict[str, int]:
    """Nanoseconds of work whose bytes are known, by what limits it: `compute-bound`, `memory-bound`, "" for unknown."""
    found: dict[str, int] = defaultdict(int)
    for rate in why.rates:
        found[limit_of(rate, peaks)[0] if peaks is not None else ""] += rate.device_ns
    return found


def _stack(stack: str, profile: Profile) -> list[Spot]:
    root = profile.trace.project_root
    return [
        Spot(
            file=frame.path,
            line=frame.line,
            place=place_words(frame.path, frame.line, root),
            function=word(frame.function),
        )
        for frame in parse_call_stack(stack)[:_FRAMES]
    ]


class ModulesAsked(Choice, kw_only=True, frozen=True):
    """How modules are shown."""

    folded: bool = False
    """Layers that are alike as one row."""


class Modules(PageAnswer):
    """The tree of modules."""

    table: Table
    can_fold: bool
    """Whether some are alike."""
    paths: list[str]
    """Of each row the whole path, `*` for numbers; "" where the trace has no paths."""


def modules(library: Library, question: ModulesAsked) -> Modules:
    """The modules, those first in which the device works longest."""
    profile = library.profile(question)
    plain, folded = plain_modules(profile.modules), folded_modules(profile.modules)
    rows = folded if question.folded else plain
    table = table_of(
        "modules",
        "Modules",
        _columns(profile),
        rows,
        parents=[row.parent for row in rows],
        keys=lambda row: key_of(row.module.path, row.module.class_name),
    )
    shown = rows[: len(table.rows)]
    return Modules(table=table, can_fold=len(folded) < len(plain), paths=[word(row.module.path, 1000) for row in shown])


def _columns(profile: Profile) -> list[ColumnOf]:
    def of_branch(column: ColumnOf) -> ColumnOf:
        return column._replace(value=lambda row: column.value(row.module))

    return [ColumnOf("name", "module", "text", _name), *map(of_branch, module_columns(profile))]


def _name(row: Branch) -> str:
    return f"{row.name} \N{MULTIPLICATION SIGN}{row.modules}" if row.modules > 1 else row.name
