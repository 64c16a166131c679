"""docs/counters.md lists every counter, in the words of the table that the code has."""

from __future__ import annotations

from pathlib import Path

from deepscope.trace.format.counters import TRACKS


def test_the_page_has_every_counter_in_the_order_of_the_report(repository: Path) -> None:
    text = (repository / "docs" / "counters.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| `")]
    listed = {cells[0].strip().strip("`"): [cell.strip() for cell in cells[1:]] for cells in rows if len(cells) == 5}
    assert list(listed) == list(TRACKS)
    for name, facts in TRACKS.items():
        assert listed[name][:3] == [facts.unit or "count", facts.series, facts.what]
        assert listed[name][3]
