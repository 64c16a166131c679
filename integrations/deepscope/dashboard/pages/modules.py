"""The modules as a tree: forward and backward, parameters, FLOPs; alike layers as one where that is wanted."""

from __future__ import annotations

from deepscope.dashboard.answer import Choice, PageAnswer, Table
from deepscope.dashboard.library import Library
from deepscope.dashboard.pages.tables import key_of, table_of, word
from deepscope.records import Profile
from deepscope.report.module_tree import Branch, folded_modules, module_columns, plain_modules
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
    return Modules(table=table, can_fold=len(folded) < len(plain), paths=[word(row.module.path, 1000) for row in shown])


def _columns(profile: Profile) -> list[ColumnOf]:
    def of_branch(column: ColumnOf) -> ColumnOf:
        return column._replace(value=lambda row: column.value(row.module))

    return [ColumnOf("name", "module", "text", _name), *map(of_branch, module_columns(profile))]


def _name(row: Branch) -> str:
    return f"{row.name} \N{MULTIPLICATION SIGN}{row.modules}" if row.modules > 1 else row.name
