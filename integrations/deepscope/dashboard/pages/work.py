"""The most expensive modules, operators and kernels: what the first page shows where lines do not divide the time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeVar

from deepscope.dashboard.answer import PageAnswer
from deepscope.dashboard.pages.below import NamedTime
from deepscope.dashboard.pages.operators import kernel_key, operator_key
from deepscope.dashboard.pages.tables import key_of, word
from deepscope.records import Kernel, Operator, Profile
from deepscope.report.event_names import readable
from deepscope.report.module_columns import Branch, folded_modules

ONE_LINE = 0.5
"""A line with more than this part of the cost calls the rest (`main()`, `trainer.fit`, a graph's replay)."""
_ROWS = 5
_T = TypeVar("_T")


class WorkList(PageAnswer):
    """The most expensive rows of one page."""

    page: Literal["modules", "operators", "kernels"]
    title: str
    rows: list[NamedTime]
    """By their own work, the largest first."""
    whole_ns: int
    """All work, which the rows are parts of."""


def work_of(profile: Profile) -> list[WorkList]:
    """Where work is done, by module, operator and kernel; lists that would be empty are left out."""
    whole = profile.totals.device_ns
    modules = [] if len(profile.modules) < 2 else _largest(folded_modules(profile.modules), _of_module)
    found: list[WorkList] = [
        WorkList(page="modules", title="Modules", rows=modules, whole_ns=whole),
        WorkList(page="operators", title="Operators", rows=_largest(profile.operators, _of_operator), whole_ns=whole),
        WorkList(page="kernels", title="Kernels", rows=_largest(profile.kernels, _of_kernel), whole_ns=whole),
    ]
    return [one for one in found if one.rows]


def _largest(rows: Iterable[_T], shown: Callable[[_T], NamedTime]) -> list[NamedTime]:
    found = sorted(map(shown, rows), key=lambda one: -one.time_ns)[:_ROWS]
    return [one for one in found if one.time_ns > 0]


def _of_module(row: Branch) -> NamedTime:
    module = row.module
    path = module.path or row.name
    label = path if path.startswith(module.class_name) else f"{path} ({module.class_name})"
    return NamedTime(
        key=key_of(module.path, module.class_name),
        label=word(label),
        time_ns=module.self_device_ns,
        calls=module.calls,
    )


def _of_operator(row: Operator) -> NamedTime:
    return NamedTime(key=operator_key(row), label=word(readable(row.name)), time_ns=row.self_device_ns, calls=row.calls)


def _of_kernel(row: Kernel) -> NamedTime:
    return NamedTime(key=kernel_key(row), label=word(readable(row.name)), time_ns=row.device_ns, calls=row.calls)
