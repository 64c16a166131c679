"""Each column of an event table has a meaning, which docs/columns.md tells, and each meaning is of a column."""

from deepscope.analysis.analysis import analyse
from deepscope.analysis.event_columns import COLUMNS, meaning
from deepscope.analysis.event_tables import EVENT_TABLES, event_table
from deepscope.analysis.ownership.attribution import attribute
from deepscope.trace.read import read_trace
from recorded_traces import OWN_TRACES


def test_columns_and_meanings_are_of_each_other() -> None:
    analysis = analyse(attribute(read_trace(OWN_TRACES / "grafted-device.json.gz")))
    columns = {table: [column.name for column in event_table(analysis, table).columns] for table in EVENT_TABLES}
    for table, names in columns.items():
        assert len(set(names)) == len(names)
        assert all(meaning(table, name) for name in names)
    for key in COLUMNS:
        table, _, name = key.rpartition(".")
        assert any(name in names for one, names in columns.items() if table in ("", one)), key
