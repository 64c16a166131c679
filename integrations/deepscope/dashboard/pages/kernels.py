"""The kernels: how long, how launched, how they fill the device; and one of them in detail."""

from __future__ import annotations

from deepscope.dashboard.answer import Choice, PageAnswer, Table
from deepscope.dashboard.library import Library
from deepscope.dashboard.pages.below import NamedTime, OwnerLine, lines_with
from deepscope.dashboard.pages.tables import key_of, table_of
from deepscope.dashboard.pages.words import word
from deepscope.errors import OptionError
from deepscope.printable import printable
from deepscope.records import Kernel, KernelKind
from deepscope.report.event_names import readable
from deepscope.report.kernel_columns import kernel_columns

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
        operator=None
        if launcher is None
        else NamedTime(
            key=key_of(launcher.name),
            label=word(readable(launcher.name)),
            time_ns=launcher.self_device_ns,
            calls=launcher.calls,
        ),
        lines=lines_with(profile, "kernel", row.name),
    )


def kernel_key(row: Kernel) -> str:
    """The word of an address for a row."""
    return key_of(row.name, row.kind)
