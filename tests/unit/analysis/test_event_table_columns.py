"""Each event table has the columns that docs/columns.md tells of it."""

from deepscope.analysis.analysis import analyse
from deepscope.analysis.event_tables import EVENT_TABLES, event_table
from deepscope.analysis.event_tables.meanings import COLUMNS, TABLES, meaning
from deepscope.analysis.ownership.attribution import attribute
from deepscope.trace.read import read_trace
from recorded_traces import OWN_TRACES


def test_each_table_of_events_has_the_columns_that_are_told() -> None:
    assert list(TABLES) == list(EVENT_TABLES)
    analysis = analyse(attribute(read_trace(OWN_TRACES / "grafted-device.json.gz")))
    for name, (_, columns) in TABLES.items():
        found = event_table(analysis, name).columns
        assert [column.name for column in found] == list(columns)
        for column in found:
            kind, may_lack, _ = meaning(name, column.name)
            assert column.type == kind
            assert may_lack or not column.is_optional or column.type == "text"


def test_every_meaning_is_of_some_table() -> None:
    for name in COLUMNS:
        table, _, column = name.rpartition(".")
        assert any(column in columns for one, (_, columns) in TABLES.items() if table in ("", one)), name
