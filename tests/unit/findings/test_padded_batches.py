"""DS041, padded batches."""

from __future__ import annotations

import pytest

from audited_traces import PLACES, US, found_in, recorded


@pytest.mark.parametrize(("longest", "is_measured"), [(30, True), (97, False)])
def test_padding_costs_its_part_of_the_work_on_all_positions(findings_of, longest: int, is_measured: bool):
    row = {"place": 0, "rows": 8, "length": 100, "positions": 800, "padded": 600, "longest": longest}
    row |= {"operators": [[0, "aten::mm", 1, 1], [0, "aten::relu", 1, 1]]}
    row |= {"backward": [[0, "aten::mm", 2, 2], [0, "aten::threshold_backward", 1, 1]]}
    found = found_in(findings_of, {"places": PLACES, "padding": [row]}, "DS041")
    assert found.evidence["work_ns"] == 2 * (150 + 240) * US
    assert found.saving_ns == int((0.7 if is_measured else 0.75) * 2 * 390 * US)  # behind the longest, or all
    assert found.is_measured is is_measured
    assert ("own longest sample" in found.remedy.text) is is_measured
    assert "75% of the positions" in found.message
    for little in ({"padded": 150}, {"padded": 0}, {"operators": [], "backward": []}):
        assert findings_of(recorded({"places": PLACES, "padding": [row | little]}), "DS041") == []
