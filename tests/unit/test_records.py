"""The records' fields say how ranks merge: each does, and the merge follows."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from deepscope import records
from deepscope.records.merging import (
    First,
    Largest,
    RankRecords,
    Smallest,
    Sum,
    merge,
    merged_by,
    quotient,
    rule_of,
    table,
)

MERGED = [
    one
    for one in (getattr(records, name) for name in records.__all__)
    if isinstance(one, type)
    and issubclass(one, msgspec.Struct)
    # Taken over whole, of one of the ranks or of a file's first, or what a merge makes, or is worked out of its result.
    and one
    not in {
        records.CurvePoint,
        records.Edit,
        records.KeyFigures,
        records.MemoryFailure,
        records.RankSpread,
        records.Remedy,
        records.SourceFile,
    }
]


class Row(msgspec.Struct):
    name: First[str]
    calls: Sum
    device_ns: Sum
    longest: Largest
    began: Smallest
    mean: Annotated[int, merged_by(quotient("device_ns", "calls"))] = 0


class Whole(msgspec.Struct):
    rows: Annotated[list[Row], merged_by(table("name", order=lambda row: row.name))]


@pytest.mark.parametrize("record", MERGED, ids=lambda record: str(record.__name__))
def test_every_field_says_how_ranks_merge(record: type[msgspec.Struct]) -> None:
    for field in msgspec.structs.fields(record):
        assert callable(rule_of(record, field)), field.name


def test_a_field_that_does_not_say_is_an_error_and_not_the_first_ranks() -> None:
    class Silent(msgspec.Struct):
        calls: int

    with pytest.raises(TypeError, match=r"Silent\.calls does not say how ranks merge"):
        merge(RankRecords([Silent(1), Silent(2)], [0, 1], [0, 1]))


def test_fields_follow_their_rules() -> None:
    ranks = [
        Whole([Row("b", 1, 10, 10, 5), Row("a", 2, 30, 20, 9)]),
        Whole([Row("c", 3, 3, 1, 1), Row("b", 2, 5, 4, 3)]),
    ]
    merged = merge(RankRecords(ranks, [0, 1], [0, 1]))
    assert merged.rows == [Row("a", 2, 30, 20, 9, 15), Row("b", 3, 15, 10, 3, 5), Row("c", 3, 3, 1, 1, 1)]


def test_what_holds_on_one_rank_alone_does_not_depend_on_their_order() -> None:
    def merged(**fields: list[Any]) -> records.Function:
        functions = [
            records.Function(file="a.py", line=1, function="f", **dict(zip(fields, values, strict=True)))
            for values in zip(*fields.values(), strict=True)
        ]
        return merge(RankRecords(functions, range(len(functions)), range(len(functions))))

    assert merged(exact=[False, True]).exact
    assert merged(exact=[True, False]).exact
