"""Operations on columns that know nothing of traces: intervals, chains of parents, rankings, sums."""
