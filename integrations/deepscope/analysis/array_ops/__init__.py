"""Operations on columns: intervals of time, events picked by kind and name, rankings, sums."""
