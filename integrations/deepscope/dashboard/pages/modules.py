"""The modules as a tree: forward and backward, parameters, FLOPs; alike layers as one where that is wanted."""

from __future__ import annotations

from typing import Any

from deepscope.dashboard.answer import Choice, PageAnswer, Table
from deepscope.dashboard.library import Library
from deepscope.dashboard.pages.tables import key_of, table_of
from deepscope.records import Profile
from deepscope.report.module_folding import Branch, folded_modules, plain_modules
from deepscope.report.table_column import ColumnOf


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
    return Modules(table=table, can_fold=len(folded) < len(plain), paths=[_path(row) for row in shown])


def _path(row: Branch) -> str:
    from deepscope.dashboard.pages.words import word

    return word(row.module.path, 1000)


def _columns(profile: Profile) -> list[ColumnOf]:
    whole = profile.totals.device_ns
    backward = any(row.total_backward_device_ns for row in profile.modules)

    def of(key: str, title: str, kind: Any, rank: int, explained: str) -> ColumnOf:
        return ColumnOf(key, title, kind, lambda row: getattr(row.module, key), explained, rank)

    def forward(row: Branch) -> int | None:
        return row.module.total_device_ns - row.module.total_backward_device_ns if backward else None

    return [
        ColumnOf("name", "module", "text", _name),
        ColumnOf(
            "share",
            "share",
            "share",
            lambda row: row.module.total_device_ns / whole if whole else None,
            "Its part, with the modules in it, of all device work.",
        ),
        of("total_device_ns", "total", "time", 0, "Work of it and of the modules in it."),
        ColumnOf("forward_ns", "forward", "time", forward, "The part of the total in the forward pass.", 1),
        of("total_backward_device_ns", "backward", "time", 1, "The part of the total in the backward pass."),
        of("self_device_ns", "self", "time", 2, "Work in no module further in."),
        of("total_cpu_ns", "CPU", "time", 3, "CPU time of it and of the modules in it."),
        of("calls", "calls", "count", 4, "How often it ran forward."),
        of("launches", "launches", "count", 8, "Kernels launched in no module further in."),
        of("total_flops", "FLOPs", "flops", 5, "Of it and of the modules in it, where known."),
        of("parameters", "parameters", "count", 6, "Elements of its parameters and of those of the modules in it."),
        ColumnOf("class_name", "class", "text", _class, "", 2),
    ]


def _name(row: Branch) -> str:
    return f"{row.name} \N{MULTIPLICATION SIGN}{row.modules}" if row.modules > 1 else row.name


def _class(row: Branch) -> str:
    return "" if row.module.path.startswith(row.module.class_name) else row.module.class_name
