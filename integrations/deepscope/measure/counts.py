"""What was counted of a model, summed up in all, by operator, by module and by both; as text, JSON, CSV and HTML."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from typing import Any

import msgspec
from torch import nn
from torch.nn.parameter import is_lazy

from deepscope.capture import torch_compat
from deepscope.errors import OptionError
from deepscope.measure.counting import Counting, ModuleCall, Tally
from deepscope.printable import printable
from deepscope.quantities import bytes_text, count_text, number_text
from deepscope.report.json_csv import csv_text
from deepscope.report.table_column import ColumnOf, in_order
from deepscope.report.table_column import field as column_of
from deepscope.report.terminal import Styles, TextColumn, render, shown_words


@dataclass(frozen=True, kw_only=True)
class TotalNumbers:
    """The whole model, for one call."""

    parameters: int
    """Elements of all parameters, a shared one once."""
    trainable_parameters: int
    """The part that requires gradients."""
    parameter_bytes: int
    flops: int
    """Forward and, where asked for, backward; a multiplication and an addition are two."""
    backward_flops: int
    """The part of `flops` in the backward pass."""
    activation_bytes: int
    """Results that the operators of the forward pass wrote to memory of their own."""
    moved_bytes: int
    """The least that operators must read and write."""
    calls: int
    """Of operators, views among them."""


@dataclass(frozen=True, kw_only=True)
class OperatorNumbers:
    """All calls of one operator."""

    operator: str
    """As a trace names it: `aten::addmm`."""
    calls: int
    flops: int
    backward_flops: int
    activation_bytes: int
    moved_bytes: int


@dataclass(frozen=True, kw_only=True)
class ModuleNumbers:
    """One module, with all that it calls; the fields that begin with `self_` without that."""

    path: str
    """Dotted, in the model; "" for the model itself."""
    class_name: str
    calls: int
    """Of the module, in the forward pass."""
    parameters: int
    """Its own and those of the modules that it holds, a shared one once."""
    self_parameters: int
    flops: int
    self_flops: int
    backward_flops: int
    activation_bytes: int
    self_activation_bytes: int
    moved_bytes: int


@dataclass(frozen=True, kw_only=True)
class ModuleOperatorNumbers(OperatorNumbers):
    """The calls of one operator that a module makes itself."""

    path: str
    class_name: str


@dataclass(frozen=True, kw_only=True, repr=False)
class ModelCounts:
    """Parameters, FLOPs and activation bytes of one call of a model; prints itself as a table.

    Each of `by_operator` and `by_both` sums to `total`, and so do the `self_` fields of `by_module`.
    """

    model: str
    """Its class, or the function's name."""
    with_backward: bool
    total: TotalNumbers
    by_operator: tuple[OperatorNumbers, ...]
    """Most FLOPs first."""
    by_module: tuple[ModuleNumbers, ...]
    """In the order of the model's tree, the model first; what ran in no module stands at the model."""
    by_both: tuple[ModuleOperatorNumbers, ...]
    """Most FLOPs first."""
    without_formula: dict[str, int] = field(default_factory=dict)
    """Operators that may take FLOPs which nothing tells (custom ones, recurrent layers of oneDNN), and their calls."""

    def table(self, by: str = "module", *, limit: int = 0, width: int = 80) -> str:
        """As text, `by` "module", "operator" or "both"; the `limit` rows with most FLOPs, 0 for all.

        Raises `OptionError`: no such `by`.
        """
        return model_text(self, by=by, limit=limit, width=width)

    def to_json(self) -> str:
        """All tables as a JSON object, fields as they are named here."""
        return model_json(self)

    def to_csv(self, by: str = "module") -> str:
        """One table as CSV. Raises `OptionError`: no such `by`."""
        return model_csv(self, by=by)

    def __str__(self) -> str:
        return self.table(limit=40).rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return model_html(self)


class _Row:
    """A module while it is summed up."""

    def __init__(self, class_name: str, modules: Iterable[nn.Module]) -> None:
        self.class_name = class_name
        self.modules = list(modules)
        self.calls = 0
        self.self_parameters = 0
        self.own: dict[str, Tally] = {}
        """By operator, without what the modules do that it calls."""
        self.all = Tally()


def model_counts(counting: Counting, root: nn.Module | None, *, name: str, with_backward: bool) -> ModelCounts:
    """The tables of what was counted, once that has ended.

    Without a `root`, a function of no module was called: below it stand the outermost modules that it called.
    """
    outermost = [one.module for one in counting.root.inner.values() if one.module is not None]
    roots = outermost if root is None else [root]
    paths: dict[int, str] = {}
    rows = {"": _Row(name, roots)}
    for prefix, one in zip(_prefixes(roots) if root is None else [""], roots, strict=True):
        for inner, module in one.named_modules():
            path = ".".join(filter(None, (prefix, torch_compat.uncompiled_path(inner))))
            paths[id(module)] = path
            if path:
                rows.setdefault(path, _Row(type(module).__qualname__, [module]))
    for place in counting.root.within():
        _add(place, _path(place, paths), rows, paths)
    rows[""].calls = rows[""].calls or 1
    taken: set[int] = set()
    for row in rows.values():
        mine = (one for module in row.modules for one in module.parameters(recurse=False))
        row.self_parameters = sum(map(_size, _distinct(mine, taken)))
    return _counts(counting, rows, name=name, with_backward=with_backward)


def _prefixes(roots: list[nn.Module]) -> Iterator[str]:
    """What the paths in each root begin with: its class, numbered from the second one."""
    seen: Counter[str] = Counter()
    for one in roots:
        kind = type(one).__qualname__
        seen[kind] += 1
        yield kind if seen[kind] == 1 else f"{kind}#{seen[kind]}"


def _path(place: ModuleCall, paths: dict[int, str]) -> str:
    """The path of a place's module; one that the model does not hold is named after its class, below its caller."""
    if place.module is None:
        return ""
    known = paths.get(id(place.module))
    if known is None:
        caller = _path(place.parent, paths) if place.parent is not None else ""
        known = ".".join(filter(None, (caller, f"<{type(place.module).__qualname__}>")))
        paths[id(place.module)] = known
    return known


def _add(place: ModuleCall, path: str, rows: dict[str, _Row], paths: dict[int, str]) -> None:
    """Add the work of one place to its module, and to each of those that called it."""
    if path not in rows and place.module is not None:
        rows[path] = _Row(type(place.module).__qualname__, [place.module])
    rows[path].calls += place.calls
    around = {""}
    outer: ModuleCall | None = place
    while outer is not None:
        around.add(_path(outer, paths))
        outer = outer.parent
    for operator, tally in place.tallies.items():
        rows[path].own.setdefault(operator, Tally()).add(tally)
        for one in around:
            rows[one].all.add(tally)


def _distinct(parameters: Iterable[Any], seen: set[int]) -> list[Any]:
    found = {id(one): one for one in parameters if id(one) not in seen}
    seen.update(found)
    return list(found.values())


def _parameters(row: _Row) -> list[Any]:
    """Those of its modules and of the modules in them, each once."""
    return _distinct((one for module in row.modules for one in module.parameters()), set())


def _size(parameter: Any) -> int:
    return 0 if is_lazy(parameter) else int(parameter.numel())


def _counts(counting: Counting, rows: dict[str, _Row], *, name: str, with_backward: bool) -> ModelCounts:
    operators: dict[str, Tally] = {}
    both: list[ModuleOperatorNumbers] = []
    for path, row in rows.items():
        for operator, tally in row.own.items():
            operators.setdefault(operator, Tally()).add(tally)
            both.append(ModuleOperatorNumbers(path=path, class_name=row.class_name, operator=operator, **vars(tally)))
    parameters = _parameters(rows[""])
    return ModelCounts(
        model=name,
        with_backward=with_backward,
        total=TotalNumbers(
            parameters=sum(map(_size, parameters)),
            trainable_parameters=sum(_size(one) for one in parameters if one.requires_grad),
            parameter_bytes=sum(_size(one) * one.element_size() for one in parameters),
            **vars(rows[""].all),
        ),
        by_operator=tuple(
            sorted(
                (OperatorNumbers(operator=operator, **vars(tally)) for operator, tally in operators.items()),
                key=lambda one: (-one.flops, -one.activation_bytes, one.operator),
            )
        ),
        # Without lists of modules, which nobody calls, and modules that others use without calling them.
        by_module=tuple(
            _module(path, row) for path, row in rows.items() if not path or row.calls or row.own or row.self_parameters
        ),
        by_both=tuple(sorted(both, key=lambda one: (-one.flops, -one.activation_bytes))),
        without_formula=dict(counting.without_formula),
    )


def _module(path: str, row: _Row) -> ModuleNumbers:
    own = Tally()
    for tally in row.own.values():
        own.add(tally)
    return ModuleNumbers(
        path=path,
        class_name=row.class_name,
        calls=row.calls,
        parameters=sum(map(_size, _parameters(row))),
        self_parameters=row.self_parameters,
        flops=row.all.flops,
        self_flops=own.flops,
        backward_flops=row.all.backward_flops,
        activation_bytes=row.all.activation_bytes,
        self_activation_bytes=own.activation_bytes,
        moved_bytes=row.all.moved_bytes,
    )


_count = partial(number_text, kind="count")
CHOICES = ("module", "operator", "both")
"""What the rows of a table can be."""


def model_text(counts: ModelCounts, *, by: str = "module", limit: int = 0, width: int = 80, color: bool = False) -> str:
    """Totals, a table fitted to `width`, and notes; ends in a newline. Raises `OptionError`: no such `by`."""
    rows = _rows(counts, by)
    shown = _largest(rows, limit)
    styles = Styles(color)
    lines = [f"{styles.title(title)}  {text}" for title, text in _head(counts)]
    lines += ["", *render(_columns(shown, counts, styles), max(40, width), title_style=styles.title)]
    if len(shown) < len(rows):
        lines.append(shown_words(len(shown), len(rows)))
    lines += ["", *_notes(counts)]
    return "\n".join(lines).rstrip("\n") + "\n"


def model_json(counts: ModelCounts, *, by: str | None = None, limit: int = 0) -> str:
    """Everything, with the names of the fields; with `by` one table as `rows`. Tables have at most `limit` rows.

    `counts` says how many rows each table has. Raises `OptionError`: no such `by`.
    """
    content = asdict(counts)
    tables = {f"by_{choice}": _rows(counts, choice) for choice in CHOICES}
    shown = {name: [asdict(row) for row in _largest(rows, limit)] for name, rows in tables.items()}
    content |= shown | {"counts": {name: len(rows) for name, rows in tables.items()}}
    if by is not None:
        _rows(counts, by)
        content = {name: value for name, value in content.items() if name not in tables}
        content |= {"by": by, "rows": shown[f"by_{by}"]}
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode()


def model_csv(counts: ModelCounts, *, by: str = "module", limit: int = 0) -> str:
    """One table, a header row first. Raises `OptionError`: no such `by`."""
    rows = _largest(_rows(counts, by), limit)
    kind = {"module": ModuleNumbers, "operator": OperatorNumbers, "both": ModuleOperatorNumbers}[by]
    names = [one.name for one in fields(kind)]
    return csv_text(names, ([getattr(row, name) for name in names] for row in rows))


def model_html(counts: ModelCounts) -> str:
    """Totals and the table of modules for a notebook; every name is escaped."""
    shown = _largest(counts.by_module, 200)
    columns = [column for column in _columns(shown, counts, Styles()) if not column.is_empty]
    head = "<br>".join(f"<b>{html.escape(title.strip())}</b> {html.escape(text)}" for title, text in _head(counts))
    titles = "".join(f"<th>{html.escape(column.title)}</th>" for column in columns)
    cells = [
        [f'<td style="text-align:{"right" if one.right else "left"}">{html.escape(cell)}</td>' for cell in one.cells]
        for one in columns
    ]
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True))
    more = len(counts.by_module) - len(shown)
    notes = [*([f"… and {more:,} more"] if more else []), *_notes(counts)]
    foot = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return f"<div><p>{head}</p><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>{foot}</div>"


def _rows(counts: ModelCounts, by: str) -> Sequence[Any]:
    if by not in CHOICES:
        raise OptionError("by", by, f"must be one of {', '.join(CHOICES)}")
    rows: Sequence[Any] = getattr(counts, f"by_{by}")
    return rows


def _largest(rows: Sequence[Any], limit: int) -> Sequence[Any]:
    """The rows with most FLOPs, in their order; all of them with 0."""
    if not limit:
        return rows
    by_flops = sorted(range(len(rows)), key=lambda place: (-rows[place].flops, -rows[place].activation_bytes))
    return [rows[place] for place in sorted(by_flops[:limit])]


def _head(counts: ModelCounts) -> Iterator[tuple[str, str]]:
    total = counts.total
    count = total.parameters - total.trainable_parameters
    frozen = f", {_count(count)} of them frozen" if count else ""
    flops = _count(total.flops)
    if counts.with_backward:
        forward = total.flops - total.backward_flops
        flops += f" (forward {_count(forward)}, backward {_count(total.backward_flops)})"
    yield "model      ", printable(counts.model)
    yield "parameters ", f"{_count(total.parameters)} ({bytes_text(total.parameter_bytes) or '0B'}){frozen}"
    yield "FLOPs      ", flops
    yield "activations", f"{bytes_text(total.activation_bytes) or '0B'} written by the forward pass's operators"
    yield "moved      ", f"{bytes_text(total.moved_bytes) or '0B'} at least, read and written"


def _columns(rows: Sequence[Any], counts: ModelCounts, styles: Styles) -> list[TextColumn]:
    whole = counts.total.flops
    columns = [
        ColumnOf(
            "part",
            "share",
            "share",
            lambda row: row.flops / whole if row.flops else None,
            heat=lambda row: "hot" if whole and row.flops >= whole / 5 else "",
        ),
        column_of("flops", "FLOPs", "count"),
        column_of("backward_flops", "backward", "count", rank=6),
        column_of("activation_bytes", "activations", "bytes", rank=1),
        column_of("moved_bytes", "moved", "bytes", rank=5),
        column_of("calls", "calls", "count", rank=4),
    ]
    if rows and hasattr(rows[0], "parameters"):
        columns.insert(2, column_of("self_flops", "self FLOPs", "count", rank=7))
        columns.insert(0, column_of("parameters", "parameters", "count", rank=2))
    if rows and hasattr(rows[0], "path"):
        columns.append(ColumnOf("path", "module", "place", lambda row: row.path or "(all)", least=16))
    if rows and hasattr(rows[0], "operator"):
        columns.append(column_of("operator", "operator", "text", least=16))
    elif rows:
        columns.append(column_of("class_name", "class", "text", rank=3, least=10))
    return in_order(columns, rows, styles)


def _notes(counts: ModelCounts) -> Iterator[str]:
    if counts.without_formula:
        named = ", ".join(f"{printable(name)} ({count_text(calls)})" for name, calls in counts.without_formula.items())
        yield f"FLOPs are not known of: {named}"
