"""All tables of a run: those of its Profile, then those of its traces' events, rank by rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.event_tables import EVENT_TABLES, event_table
from deepscope.records import Profile
from deepscope.records.columns import ColumnTable, column_table, table_names
from deepscope.store.analyses import rank_of


def all_tables(profile: Profile, analyses: Iterable[Analysis]) -> Iterator[ColumnTable]:
    """Each table of the Profile once, even if it is empty; then each table of events, once a rank, under one name."""
    for name in table_names(type(profile)):
        yield column_table(profile, name)
    for analysis in analyses:
        rank = rank_of(analysis)
        for name in EVENT_TABLES:
            yield event_table(analysis, name, rank=rank)
