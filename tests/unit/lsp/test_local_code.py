"""Whether the code of a trace is here, and what is loaded where it is not."""

from pathlib import Path

import pytest

from deepscope.store.files import TraceFile
from deepscope.store.runs import FoundTrace, RunKey
from deepscope.store.trace_identity import Identity
from deepscope_lsp.engine.discovery import Candidates
from deepscope_lsp.engine.path_map import PathMap
from deepscope_lsp.engine.project import is_here
from lsp_profiles import SOURCE, make_profile

RECORDED = "/cluster/job/train.py"


def here(root: Path, recorded: str, text: str | None) -> bool:
    profile = make_profile(recorded, text=text, root="/cluster/job")
    return is_here(profile, PathMap(dict(profile.files), "/cluster/job", [str(root)]))


@pytest.mark.parametrize(
    ("text_here", "recorded_text", "expected"),
    [
        (SOURCE, SOURCE, True),
        (SOURCE + "# edited\n", SOURCE, True),
        ("import sys\n\n\ndef main():\n    return sys.argv\n", SOURCE, False),
        (SOURCE, None, True),
        ("def train():\n    pass\n\n\nclass Other:\n    def forward(self):\n        pass\n", None, True),
        ("def main():\n    pass\n", None, False),
        (None, SOURCE, False),
    ],
    ids=["same", "edited", "another program", "same functions", "as many", "none of its functions", "no file"],
)
def test_a_file_of_the_same_name_counts_if_it_reads_alike(
    tmp_path: Path, text_here: str | None, recorded_text: str | None, expected: bool
) -> None:
    if text_here is not None:
        (tmp_path / "train.py").write_text(text_here, encoding="utf-8")
    assert here(tmp_path, RECORDED, recorded_text) is expected


def test_a_file_that_lies_where_it_was_recorded_is_here_whatever_it_holds_now(tmp_path: Path) -> None:
    file = tmp_path / "elsewhere" / "train.py"
    file.parent.mkdir()
    file.write_text("rewritten = 1\n", encoding="utf-8")
    assert here(tmp_path / "workspace", str(file), SOURCE)


def found(run: str, rank: int, seconds: int, window: int = 0) -> FoundTrace:
    peek = Identity(True, "w", run, "fit", window, rank, 2, "", seconds * 10**9)
    return FoundTrace(TraceFile(f"/runs/{run}.{window}.{rank}.json", 1, 1), peek, RunKey("", run))


def test_after_a_broken_rank_come_older_windows_then_older_runs_then_the_ranks_beside_it() -> None:
    traces = [found("new", rank, 9 - window, 3 - window) for window in range(2) for rank in range(2)]
    traces += [found("old", rank, 1) for rank in range(2)]
    candidates = Candidates(traces, rank=None, stage=None, broken=())
    seen = []
    while (selection := candidates.next()) is not None and len(seen) < 12:
        seen.append([file.name for file in selection.files])
        candidates.drop(selection)
    assert seen[:3] == [
        ["new.3.0.json", "new.3.1.json"],
        ["new.2.0.json", "new.2.1.json"],
        ["old.0.0.json", "old.0.1.json"],
    ]
    assert seen[3:5] == [["new.3.0.json"], ["new.3.1.json"]]
    assert len(seen) == 9


def test_the_position_of_a_selection_says_how_many_traces_were_looked_at() -> None:
    traces = [found("new", rank, 9 - window, 3 - window) for window in range(2) for rank in range(2)]
    traces += [found("old", rank, 1) for rank in range(2)]
    candidates = Candidates(traces, rank=None, stage=None, broken=())
    positions = []
    while (selection := candidates.next()) is not None and len(positions) < 6:
        positions.append(candidates.position(selection))
        candidates.drop(selection)
    assert positions == ["2 of 6", "4 of 6", "6 of 6", "6 of 6", "6 of 6", "6 of 6"]
    alone = Candidates(traces[:2], rank=None, stage=None, broken=())
    selection = alone.next()
    assert selection is not None
    assert alone.position(selection) == ""


def test_a_run_that_is_not_wanted_is_passed_over_with_all_its_windows() -> None:
    traces = [found("new", 0, 9, 1), found("new", 0, 8, 0), found("old", 0, 1)]
    candidates = Candidates(traces, rank=None, stage=None, broken=())
    first = candidates.next()
    assert first is not None
    candidates.drop_run(first)
    second = candidates.next()
    assert second is not None
    assert [file.name for file in second.files] == ["old.0.0.json"]
    known = Candidates(traces, rank=None, stage=None, broken={first.files})
    after = known.next()
    assert after is not None
    assert [file.name for file in after.files] == ["new.0.0.json"]
