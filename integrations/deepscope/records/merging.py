"""How records of several ranks become one: each field carries its rule, and a field without one cannot be merged.

A rule stands in the field's annotation: `calls: Sum`, `lines: Annotated[list[Line], merged_by(table(…))]`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from threading import Lock
from typing import Annotated, Any, Generic, TypeAlias, TypeVar

import msgspec

Record = TypeVar("Record", bound=msgspec.Struct)
Value = TypeVar("Value")


class RankSpread(msgspec.Struct, array_like=True):
    """The spread of a number over the merged ranks; a rank without it counts as 0."""

    min_ns: int
    min_rank: int
    median_ns: int
    """For an even number of ranks, the mean of the two in the middle, rounded down."""
    max_ns: int
    max_rank: int


class RankRecords(msgspec.Struct, Generic[Record], frozen=True):
    """Records of one thing, from some of the ranks."""

    records: Sequence[Record]
    ranks: Sequence[int]
    """The rank of each record."""
    all_ranks: Mapping[int, int]
    """All ranks of the merge, in its order: rank → its place there."""

    def values(self, field: str) -> list[Any]:
        """The records' values of a field."""
        return [getattr(record, field) for record in self.records]


Rule: TypeAlias = Callable[[RankRecords[Any], str], Any]
"""From the records and a field's name to the merged record's value of it."""


def merged_by(rule: Rule) -> msgspec.Meta:
    """The annotation of a field that merges by this rule."""
    return msgspec.Meta(extra={"merge": rule})


@cache
def _rules(record: type[msgspec.Struct]) -> dict[str, Rule]:
    return {field.name: rule_of(record, field) for field in msgspec.structs.fields(record)}


def rule_of(record: type[msgspec.Struct], field: msgspec.structs.FieldInfo) -> Rule:
    """The rule that a field's annotation carries. Raises `TypeError` where it carries none."""
    for note in getattr(field.type, "__metadata__", ()):
        if isinstance(note, msgspec.Meta) and note.extra and "merge" in note.extra:
            rule: Rule = note.extra["merge"]
            return rule
    raise TypeError(f"{record.__name__}.{field.name} does not say how ranks merge")


def merge(group: RankRecords[Record], kind: type[Record] | None = None) -> Record:
    """One record of a group of at least one, each field by its rule; `kind` where the group's are encoded ones."""
    kind = kind or type(group.records[0])
    return kind(**{field: rule(group, field) for field, rule in _rules(kind).items()})


def total(group: RankRecords[Any], field: str) -> int:
    """The sum."""
    return sum(group.values(field))


def largest(group: RankRecords[Any], field: str) -> Any:
    """The largest value."""
    return max(group.values(field))


def smallest(group: RankRecords[Any], field: str) -> Any:
    """The smallest value."""
    return min(group.values(field))


def smallest_known(group: RankRecords[Any], field: str) -> Any:
    """The smallest value but 0, which says that it is not known."""
    return min(filter(None, group.values(field)), default=0)


def first(group: RankRecords[Any], field: str) -> Any:
    """The first rank's: what is the same on all ranks, or belongs to one of them."""
    return getattr(group.records[0], field)


def first_known(group: RankRecords[Any], field: str) -> Any:
    """The first that says anything."""
    return next((value for value in group.values(field) if value is not None), None)


def any_of(group: RankRecords[Any], field: str) -> bool:
    """Whether it holds on any rank."""
    return any(group.values(field))


def joined(group: RankRecords[Any], field: str) -> str:
    """The different words, in the order of the ranks."""
    return ", ".join(dict.fromkeys(filter(None, group.values(field))))


def distinct(group: RankRecords[Any], field: str) -> list[Any]:
    """The different elements of lists, in the order of the ranks."""
    return list(dict.fromkeys(element for value in group.values(field) for element in value))


def keys_summed(group: RankRecords[Any], field: str) -> dict[str, int]:
    """The sum for each key."""
    result: dict[str, int] = {}
    for value in group.values(field):
        for key, number in value.items():
            result[key] = result.get(key, 0) + number
    return result


Sum = Annotated[int, merged_by(total)]
Largest = Annotated[int, merged_by(largest)]
Smallest = Annotated[int, merged_by(smallest)]
First: TypeAlias = Annotated[Value, merged_by(first)]
"""What names a record, or is the same on all ranks."""
FirstKnown: TypeAlias = Annotated[Value, merged_by(first_known)]
Either = Annotated[bool, merged_by(any_of)]
Joined = Annotated[str, merged_by(joined)]


def quotient(dividend: str, divisor: str) -> Rule:
    """One field's sum divided by another's, rounded down; 0 if the divisor is 0."""

    def rule(group: RankRecords[Any], _: str) -> int:
        below = total(group, divisor)
        return total(group, dividend) // below if below else 0

    return rule


def of_largest(by: str) -> Rule:
    """The value of the record with the largest `by`."""
    return lambda group, field: getattr(max(group.records, key=attrgetter(by)), field)


def spread_of(number: str) -> Rule:
    """The spread of a number over all ranks; the first rank wins a tie."""

    def rule(group: RankRecords[Any], _: str) -> RankSpread:
        values = dict(zip(group.ranks, group.values(number), strict=True))
        if len(values) < len(group.all_ranks):
            return _spread_beside_zeros(values, group.all_ranks)
        low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
        return RankSpread(values[low], low, _median(sorted(values.values())), values[high], high)

    return rule


def _spread_beside_zeros(values: Mapping[int, int], place: Mapping[int, int]) -> RankSpread:
    """The spread where other ranks have 0, in time that grows with the ranks that have a value alone."""
    zeros = len(place) - len(values)
    first_zero = next(rank for rank in place if rank not in values)
    some = {**values, first_zero: 0}
    low = min(some, key=lambda rank: (some[rank], place[rank]))
    high = min(some, key=lambda rank: (-some[rank], place[rank]))
    return RankSpread(some[low], low, _median(sorted(values.values()), zeros), some[high], high)


def _median(ordered: Sequence[int], zeros: int = 0) -> int:
    """Of numbers in order, and as many zeros beside them."""
    below = bisect_left(ordered, 0)

    def at(place: int) -> int:
        if place < below:
            return ordered[place]
        return 0 if place < below + zeros else ordered[place - zeros]

    middle, is_odd = divmod(len(ordered) + zeros, 2)
    return at(middle) if is_odd else (at(middle - 1) + at(middle)) // 2


def table(*key: str, order: Callable[[Any], Any] | None = None, as_long_as_before: bool = False) -> Rule:
    """Rows that agree in the fields of `key` become one row.

    Args:
        key: of a row.
        order: the key by which the merged rows are sorted; without one they stand as the ranks have them.
        as_long_as_before: only as many rows as the longest table had.
    """
    key_of: Callable[[Any], Hashable] = attrgetter(*key)

    def rule(group: RankRecords[Any], field: str) -> list[Any]:
        rows: dict[Hashable, tuple[list[Any], list[int]]] = {}
        tables = group.values(field)
        for rank, rows_of_rank in zip(group.ranks, tables, strict=True):
            for row in rows_of_rank:
                same, ranks = rows.setdefault(key_of(row), ([], []))
                same.append(row)
                ranks.append(rank)
        merged = [merge(RankRecords(same, ranks, group.all_ranks)) for same, ranks in rows.values()]
        if order is not None:
            merged.sort(key=order)
        return merged[: max(map(len, tables))] if as_long_as_before else merged

    return rule


def largest_first(field: str) -> Callable[[Any], int]:
    """The order of a table by a number, the largest first."""
    value: Callable[[Any], int] = attrgetter(field)
    return lambda row: -value(row)


def left_out(_: RankRecords[Any], __: str) -> Any:
    """Nothing: the caller fills in what needs the rest of the merged record."""
    return []


def nothing(_: RankRecords[Any], __: str) -> None:
    """None: it is known of a single rank alone."""


def to_be_judged(_: RankRecords[Any], __: str) -> str:
    """No word: the caller judges the merged record."""
    return ""


def record(group: RankRecords[Any], field: str) -> Any:
    """A record within the record; None if a rank has none."""
    values = group.values(field)
    return None if any(value is None for value in values) else merge(RankRecords(values, group.ranks, group.all_ranks))


T = TypeVar("T")

_MAKING = Lock()
"""msgspec makes a structure's table of types at its first use, and a second thread that comes meanwhile reads what is
not written yet, and dies: one thread makes it."""


def decoded(body: bytes, kind: type[T]) -> T:
    """A record of this kind, from MessagePack.

    Raises:
        msgspec.MsgspecError: the bytes are none.
    """
    made: Any = kind
    found: T = _of_record(made).decode(body)
    return found


def decoder_of(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """The decoder of a type; its tables are made."""
    with _MAKING:
        return msgspec.msgpack.Decoder(kind)


@cache
def _of_record(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    return decoder_of(kind)
