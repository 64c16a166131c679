"""The tables that can be asked for with `--by`: their rows, chosen, sorted and limited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal, get_origin, get_type_hints

import msgspec

from deepscope.errors import OptionError
from deepscope.records import (
    Collective,
    CounterSeries,
    CriticalLine,
    Detail,
    Function,
    HeldByLine,
    HostThread,
    Kernel,
    Line,
    Module,
    Numbers,
    Operator,
    OperatorInDetail,
    OverviewRow,
    Phase,
    Profile,
    ServingStep,
    Step,
    Stream,
    cost_ns,
)
from deepscope.report.critical_path import critical_by_line
from deepscope.report.memory import memory_by_line
from deepscope.report.module_tree import largest_modules, tree_order
from deepscope.report.whole_run import RunRow, run_rows

_SHORT = {
    "cost": "cost_ns",
    "self": "self_device_ns",
    "total": "total_device_ns",
    "backward": "backward_device_ns",
    "python": "python_ns",
    "blocked": "blocked_ns",
    "loader-wait": "loader_wait_ns",
    "core-wait": "core_wait_ns",
    "cpu": "self_cpu_ns",
    "total-cpu": "total_cpu_ns",
    "wait": "wait_ns",
    "idle": "idle_ns",
    "memory": "bytes_allocated",
    "peak": "peak_bytes",
    "size": "size_bytes",
    "parameters": "parameters_bytes",
    "gradients": "gradients_bytes",
    "optimizer": "optimizer_bytes",
    "inputs": "inputs_bytes",
    "activations": "activations_bytes",
    "temporaries": "temporaries_bytes",
    "unknown": "unknown_bytes",
    "collective": "collective_ns",
    "worker": "worker_ns",
    "worker-cpu": "worker_cpu_ns",
    "device": "device_ns",
    "busy": "busy_ns",
    "mean": "mean_ns",
    "max": "max_ns",
    "wall": "wall_ns",
    "duration": "duration_ns",
    "start": "start_ns",
    "moves": "moved_bytes",
    "allocated": "allocated_bytes",
    "delay": "delay_ns",
    "span": "span_ns",
    "time": "time_ns",
    "exposed": "exposed_ns",
    "critical": "critical_ns",
    "launch": "launch_ns",
    "gap": "gap_ns",
}
_ASCENDING = {"location", "name", "number", "start_ns", "place"}
"""Of these the smallest comes first; `place` is where a row stands in the profile."""
DERIVED = {
    "collective": ("algorithm_bytes_per_s", "bus_bytes_per_s", "transfer_ns", "wait_ns"),
    "serving": ("token_ns",),
}
"""Numbers that are worked out from a record's fields; their columns come last."""


@dataclass(frozen=True, slots=True)
class ProfileTable:
    """One of the tables of a profile."""

    by: str
    key: str
    """Its name in JSON and in `Profile`."""
    sort: str
    """A field, or a key that is computed."""
    fields: tuple[str, ...]
    """Fields that it can be sorted by."""
    scalars: tuple[str, ...]
    """Fields that are a number, a text or a flag."""
    computed: dict[str, Callable[[Any], Any]]
    rows_of: Callable[[Profile], Sequence[Any]]
    """All its rows."""
    arranged: Callable[[Sequence[Any]], list[Any]] | None = None
    """Its own order, where that is no matter of a key: a tree."""
    largest: Callable[[Sequence[Any], int], list[Any]] | None = None
    """So many of its rows, where it has an order of its own."""

    @property
    def sort_keys(self) -> dict[str, str]:
        """Short words and the fields they stand for, then the fields themselves."""
        short = {word: name for word, name in _SHORT.items() if name in self.fields}
        return short | {name: name for name in (*self.fields, *self.computed)}

    def rows(self, profile: Profile, *, sort: str | None = None, limit: int = 0) -> list[Any]:
        """The rows, largest first by `sort` (a name or number: smallest first); `limit` 0 gives all.

        Raises:
            OptionError: there is no such key; the message lists those there are.
        """
        rows = self.rows_of(profile)
        name = self.field(sort)
        if sort is None and self.arranged is not None:
            return self.limited(self.arranged(rows), sort, limit)
        if name == "place":
            ordered = list(rows)
        else:
            value = self.computed.get(name) or (lambda row: getattr(row, name))
            ordered = sorted(rows, key=value, reverse=name not in _ASCENDING)
        return ordered[:limit] if limit else ordered

    def limited(self, rows: list[Any], sort: str | None, limit: int) -> list[Any]:
        """So many of its rows, as `rows` sorts them: the first ones, of a tree the largest; 0 for all."""
        if not limit:
            return rows
        return rows[:limit] if sort is not None or self.largest is None else self.largest(rows, limit)

    def check(self, sort: str | None) -> None:
        """Raises OptionError where `rows` would for this key."""
        self.field(sort)

    def field(self, sort: str | None) -> str:
        """The field that a key of `--sort` means, the table's own for None.

        Raises:
            OptionError: there is no such key; the message lists those there are.
        """
        if sort is None:
            return self.sort
        keys = self.sort_keys
        name = keys.get(sort, keys.get(sort.replace("-", "_")))
        if name is None:
            words = [word for word in keys if word in _SHORT or not word.endswith("_ns")]
            raise OptionError("sort", sort, f"no such key for the table by {self.by}; there are: {', '.join(words)}")
        return name


def _typed(record: type[msgspec.Struct], *types: object) -> tuple[str, ...]:
    """Fields of these types; a `Literal[…]` counts as the text that it is."""
    hints = get_type_hints(record)
    plain = {name: str if get_origin(hint) is Literal else hint for name, hint in hints.items()}
    return tuple(name for name in record.__struct_fields__ if plain[name] in types)


_LEVELS: dict[str, Callable[[Any], Any]] = {
    "name": attrgetter("counter", "series"),
    "mean": attrgetter("mean"),
    "largest": attrgetter("largest"),
    "smallest": attrgetter("smallest"),
}


def _forward(row: Numbers) -> int:
    return row.self_device_ns - row.backward_device_ns


def _tokens(row: ServingStep) -> int:
    return -1 if row.tokens is None else row.tokens


def _saves(row: CriticalLine) -> int:
    return -1 if row.would_shorten_ns is None else row.would_shorten_ns


def _table(
    by: str,
    key: str,
    sort: str,
    record: type[msgspec.Struct],
    computed: dict[str, Callable[[Any], Any]],
    *,
    rows_of: Callable[[Profile], Sequence[Any]] | None = None,
    **order: Any,
) -> ProfileTable:
    """A table of records; its rows are `Profile`'s of this key, unless `rows_of` makes them."""
    return ProfileTable(
        by=by,
        key=key,
        sort=sort,
        fields=_typed(record, int),
        scalars=(*_typed(record, int, float, str, bool, str | None, int | None), *DERIVED.get(by, ())),
        computed=computed,
        rows_of=rows_of or attrgetter(key),
        **order,
    )


_NAME: dict[str, Callable[[Any], Any]] = {"name": attrgetter("name")}
_LOCATION: dict[str, Callable[[Any], Any]] = {"location": attrgetter("file", "line")}
_LINE = {"forward": _forward, "cost_ns": cost_ns, **_LOCATION}
_MODULE: dict[str, Callable[[Any], Any]] = {"forward": _forward, "name": attrgetter("path", "class_name")}
_SERVING: dict[str, Callable[[Any], Any]] = {"phase": attrgetter("phase"), "tokens": _tokens}
_CRITICAL = _LOCATION | {"saves": _saves}
_IN_DETAIL = _table(
    "operator",
    "operators",
    "self_device_ns",
    OperatorInDetail,
    {"name": attrgetter("name", "in_shapes", "stack")},
    rows_of=attrgetter("operators_in_detail"),
)

TABLES = {
    one.by: one
    for one in (
        _table("line", "lines", "cost_ns", Line, _LINE),
        _table("function", "functions", "cost_ns", Function, _LINE),
        _table("operator", "operators", "self_device_ns", Operator, _NAME),
        _table("kernel", "kernels", "device_ns", Kernel, _NAME),
        _table("module", "modules", "self_device_ns", Module, _MODULE, arranged=tree_order, largest=largest_modules),
        _table("overview", "overview", "place", OverviewRow, _NAME),
        _table("run", "run", "place", RunRow, _NAME, rows_of=run_rows),
        _table("step", "steps", "number", Step, {}),
        _table("serving", "serving_steps", "number", ServingStep, _SERVING),
        _table("phase", "phases", "wall_ns", Phase, _NAME),
        _table("thread", "threads", "place", HostThread, _NAME),
        _table("stream", "streams", "place", Stream, {}),
        _table("collective", "collectives", "time_ns", Collective, {"name": attrgetter("kind")}),
        _table("counter", "counters", "place", CounterSeries, _LEVELS),
        _table("memory", "memory_by_line", "size_bytes", HeldByLine, _LOCATION, rows_of=memory_by_line),
        _table("critical", "critical_lines", "critical_ns", CriticalLine, _CRITICAL, rows_of=critical_by_line),
    )
}
"""By the word of `--by`."""


def table(by: str, details: Sequence[Detail] = ()) -> ProfileTable:
    """The table of a word of `--by`; that of operators in detail where a profile has `details`.

    Raises:
        OptionError: there is none; the message lists those there are.
    """
    if by not in TABLES:
        raise OptionError("by", by, f"no such table; there are: {', '.join(TABLES)}")
    return _IN_DETAIL if by == "operator" and details else TABLES[by]


def table_of_steps(by: str, profile: Profile) -> str:
    """The word of `--by` that shows what `by` asks for: of a server that marks no other steps, `step` means its own."""
    return "serving" if by == "step" and not profile.steps and profile.serving_steps else by
