"""What was tried on a program is kept beside its trace, and shown at the finding that it answers."""

from pathlib import Path

from built_profiles import training
from deepscope.dashboard.pages.findings import shown_finding
from deepscope.quantities import TIMES
from deepscope.records.findings import Try
from deepscope.report.findings import findings_entries
from deepscope.store import load_profile
from deepscope.store.companion_files import join_files_beside, keep_tries, read_tries
from deepscope.store.files import local_file
from deepscope.trace.format.run_account import tries_path
from recorded_traces import own_paths

FASTER = Try(
    finding="DS011",
    remedy="fused-optimizer: fused=True in the optimizer",
    before_ns=10e6,
    after_ns=8e6,
    speedup=1.25,
    interval=(1.2, 1.3),
    verdict="faster",
    losses="within rounding",
)


def trace(tmp_path: Path) -> Path:
    path = tmp_path / "a.pt.trace.json.gz"
    path.write_bytes(next(one for one in own_paths() if one.name.endswith(".gz")).read_bytes())
    return path


def test_the_file_has_the_traces_name_and_no_ending_of_a_trace(tmp_path):
    assert tries_path(tmp_path / "a.pt.trace.json.gz") == tmp_path / "a.deepscope-tries"


def test_a_remedy_that_is_tried_again_is_replaced_and_others_stay(tmp_path):
    path = tmp_path / "a.pt.trace.json.gz"
    other = Try(finding="", remedy="compile: model.compile()", verdict="no gain", speedup=1.0, interval=(0.9, 1.04))
    keep_tries(path, [FASTER, other])
    again = Try(finding="DS011", remedy=FASTER.remedy, verdict="slower", speedup=0.5, interval=(0.4, 0.6))
    keep_tries(path, [again])
    assert read_tries(path) == [again, other]
    assert [one.name for one in tmp_path.iterdir()] == ["a.deepscope-tries"]


def test_a_file_that_is_none_of_ours_is_nothing(tmp_path):
    path = tmp_path / "a.pt.trace.json.gz"
    for content in (b"", b"{", b'{"tries": 3}', b'{"tries": [], "format": 99}', b'{"tries": [{"verdict": "great"}]}'):
        tries_path(path).write_bytes(content)
        assert read_tries(path) == []


def test_a_profile_has_what_lies_beside_its_trace_whenever_it_is_loaded(tmp_path):
    path = trace(tmp_path)
    assert load_profile(path).tries == []
    keep_tries(path, [FASTER])
    assert load_profile(path).tries == [FASTER]  # though the profile itself is cached


def test_the_finding_that_it_answers_shows_it(tmp_path):
    built = training()
    code = built.findings[0].code
    built.tries = [
        Try(finding=code, remedy="a: b", verdict="faster", speedup=1.25, interval=(1.2, 1.3), losses="identical")
    ]
    shown = [text for _, text in findings_entries(built) if text.startswith("tried")]
    assert shown == [f"tried: 1.25 {TIMES} ± 0.05 (a: b): faster, losses identical"]
    assert shown_finding(built, built.findings[0]).tried == shown


def test_what_comes_beside_a_trace_later_is_joined_and_reported_once(tmp_path):
    path = trace(tmp_path)
    profile = load_profile(path)
    file = local_file(str(path))
    assert file is not None
    files = [file]
    assert not join_files_beside(profile, files)
    keep_tries(path, [FASTER])
    assert join_files_beside(profile, files)
    assert profile.tries == [FASTER]
    assert not join_files_beside(profile, files)
