"""Folders of a run on Ascend devices: which rank is which, what their tables tell, and what is damaged."""

import json
import os
import shutil
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from wcwidth import wcswidth

from ascend_cluster import (
    GROUPS,
    comm_name,
    key_of,
    rank_folder,
    step_row,
    times,
    write_cluster,
    write_database,
    write_output,
)
from deepscope.analysis.event_tables import step_trace_time
from deepscope.errors import NoTraceError, OptionError
from deepscope.ranks.ranks_report import RanksReport
from deepscope.ranks.side_by_side import side_by_side
from deepscope.records.columns import RecordColumn
from deepscope.report.ranks import ranks_json, ranks_text
from deepscope.store.ascend.tables import group_key
from deepscope.store.load import Traces, load_profile
from deepscope.store.ranks import read_ranks
from recorded_traces import SHARED_TRACES, needs_shared_traces
from trace_builder import TraceBuilder

FORMS: dict[str, Any] = {
    "traces": write_cluster,
    "tables": lambda root: write_cluster(root, traces=False),
    "old names": lambda root: write_cluster(root, traces=False, new=False),
    "databases": write_database,
    "msprof-analyze": write_output,
}


def report(path: Path | str, **options: Any) -> RanksReport:
    read = read_ranks(path, cache=False, **options)
    return side_by_side(read.summaries, read.failures, str(path))


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, tmp_path: Path) -> RanksReport:
    return report(FORMS[request.param](tmp_path / "run"))


def test_domains_are_the_same_in_every_form(form: RanksReport) -> None:
    assert form.failures == []
    assert [row.rank for row in form.ranks] == [0, 1, 2, 3]
    assert form.world_size == 4
    found = {(row.domain, row.ranks): row for row in form.domains}
    assert set(found) == {("tp", "0-1"), ("tp", "2-3"), ("dp", "0, 2"), ("dp", "1, 3")}
    for word, count, transit in (("tp", 2, 1.0), ("dp", 1, 4.0)):
        for ranks in GROUPS[word]:
            row = found[word, ", ".join(map(str, ranks)) if word == "dp" else f"{ranks[0]}-{ranks[1]}"]
            told = [times(rank, transit) for rank in ranks]
            calls = 2 * count  # in two steps
            assert (row.kind, row.calls, row.size, row.here) == ("all_reduce", calls * 2, 2, 2)
            assert row.group == key_of(comm_name(word, ranks))
            for name, value in (("Elapse", row.elapsed_ns), ("Transit", row.transit_ns), ("Wait", row.wait_ns),
                                ("Synchronization", row.synchronization_ns), ("Idle", row.idle_ns)):  # fmt: skip
                assert value == round(sum(one[f"{name} Time(ms)"] for one in told) * calls * 1e6)
            assert row.elapsed_ns == row.transit_ns + row.wait_ns + row.idle_ns
            assert row.awaited_rank == (3 if 3 in ranks else None)
    assert {row.domain: row.role for row in form.domains} == {"tp": "tensor", "dp": "data"}


def test_links_are_the_same_in_every_form(form: RanksReport) -> None:
    links = {(row.source, row.target): row for row in form.links}
    pairs = [(a, b) for groups in GROUPS.values() for ranks in groups for a in ranks for b in ranks if a != b]
    assert set(links) == set(pairs)
    assert {row.bytes for row in form.links} == {20_000_000}
    slow, quick, near = links[1, 3], links[0, 2], links[0, 1]
    assert (slow.transport, slow.bytes_per_s, slow.domains) == ("RDMA", 2_500_000_000, ["dp"])
    assert quick.bytes_per_s == 10_000_000_000
    assert slow.typical_bytes_per_s == quick.typical_bytes_per_s == 6_250_000_000
    assert (near.transport, near.bytes_per_s, near.domains) == ("HCCS", 20_000_000_000, ["tp"])


@pytest.mark.parametrize("name", FORMS)
def test_a_rank_whose_trace_tells_no_communication_has_the_times_of_its_steps(name: str, tmp_path: Path) -> None:
    found = report(FORMS[name](tmp_path / "run"))
    for row in found.ranks:
        _, _, computing, exposed, overlapped, communication, free, *_ = (
            round(value * 1000) for value in step_row(row.rank, 7)
        )
        assert row.steps == 2
        assert (row.compute_ns, row.exposed_ns, row.idle_ns) == (computing, exposed, free)
        assert (row.overlapped_ns, row.communication_ns) == (overlapped, communication)
        assert row.step_ns == computing + exposed + free == sum(row.parts.values())
        assert row.own_ns == row.step_ns - exposed
        assert set(row.parts) <= set(found.part_names)
    assert found.slowest[0] == 3


def test_a_trace_goes_before_the_table_of_steps(tmp_path: Path) -> None:
    run = write_cluster(tmp_path / "run")
    for rank in range(4):
        table = rank_folder(run, rank) / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv"
        table.write_text("Step,Computing,Communication,Free\n7,1,0,1\n8,1,0,1\n")
    found = report(run)
    assert [row.compute_ns for row in found.ranks] == [round(step_row(rank, 7)[2] * 1000) for rank in range(4)]


def test_a_report_of_the_folder_has_every_rank(tmp_path: Path) -> None:
    run = write_cluster(tmp_path / "run")
    profile = load_profile(run, cache=False)
    assert profile.trace.ranks == [0, 1, 2, 3]
    assert profile.totals.device_ns == round(sum(step_row(rank, 7)[2] for rank in range(4)) * 2 * 1000)
    assert load_profile(run, rank=3, cache=False).totals.device_ns == round(step_row(3, 7)[2] * 2 * 1000)
    with pytest.raises(OptionError, match="there are: 0, 1, 2, 3"):
        load_profile(run, rank=4, cache=False)


def test_a_report_of_the_folder_goes_on_without_a_broken_rank(tmp_path: Path) -> None:
    run = write_cluster(tmp_path / "run")
    next(rank_folder(run, 2).rglob("trace_view.json")).write_bytes(b"")
    profile = load_profile(run, cache=False)
    assert profile.trace.ranks == [0, 1, 3]
    assert any("rank 2 is left out" in one and "is empty" in one for one in profile.trace.warnings)


def test_its_own_table_of_steps_is_that_of_the_trace(tmp_path: Path) -> None:
    run = write_cluster(tmp_path / "run")
    for rank, analysis in enumerate(Traces(run)):
        columns = {column.name: column.values for column in step_trace_time(analysis)}
        rows = [step_row(rank, step) for step in (7, 8)]
        assert list(columns["step"]) == [row[1] for row in rows]
        assert [int(value) for value in columns["computing_ns"]] == [round(row[2] * 1000) for row in rows]


@needs_shared_traces
def test_computing_is_what_the_profiler_itself_says_of_a_recorded_trace() -> None:
    assert SHARED_TRACES is not None
    import gzip

    path = SHARED_TRACES / "msprof-analyze-timeline_advice-trace_view.json.gz"
    events = json.loads(gzip.decompress(path.read_bytes()), parse_float=str)
    names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    told = [e for e in events if e["ph"] == "X" and names[e["pid"]] == "Overlap Analysis" and e["name"] == "Computing"]
    (analysis,) = Traces(path)
    columns: dict[str, RecordColumn] = {column.name: column for column in step_trace_time(analysis)}
    computing = int(columns["computing_ns"].values[0])
    # Each of its times is rounded to a nanosecond.
    assert abs(computing - sum(Decimal(e["dur"]) for e in told) * 1000) <= len(told) / 2
    assert len(told) == 274


def test_some_ranks_alone_are_some_ranks(tmp_path: Path) -> None:
    found = report(write_cluster(tmp_path / "run", ranks=(1, 3), traces=False))
    assert [row.rank for row in found.ranks] == [1, 3]
    assert (found.world_size, found.missing) == (4, "0, 2")
    assert {(row.ranks, row.size, row.here) for row in found.domains} >= {("1, 3", 2, 2), ("0-1", 2, 1), ("2-3", 2, 1)}


@pytest.mark.parametrize("inside", ["", "ASCEND_PROFILER_OUTPUT/trace_view.json"])
def test_several_paths_have_the_tables_of_their_ranks(inside: str, tmp_path: Path) -> None:
    run = write_cluster(tmp_path / "run")
    read = read_ranks([str(rank_folder(run, rank) / inside) for rank in range(4)], cache=False)
    whole = read_ranks(str(run), cache=False)
    assert [one.ascend for one in read.summaries] == [one.ascend for one in whole.summaries]
    assert all(one.ascend is not None and one.ascend.calls for one in read.summaries)
    assert read.failures == []


def test_of_several_paths_some_may_have_tables_alone(tmp_path: Path) -> None:
    run = write_cluster(tmp_path / "run")
    (rank_folder(run, 2) / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").unlink()
    paths = [str(rank_folder(run, rank)) for rank in (1, 2)]
    assert [one.rank for one in read_ranks(paths, cache=False).summaries] == [1, 2]
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoTraceError, match="empty: no trace in this folder"):
        read_ranks([*paths, str(tmp_path / "empty")], cache=False)


def test_of_two_paths_with_the_tables_of_one_rank_the_first_counts_and_the_other_is_told(tmp_path: Path) -> None:
    first, second = (rank_folder(write_cluster(tmp_path / name, traces=False), 1) for name in ("a", "b"))
    read = read_ranks([str(first), str(second)], cache=False)
    assert [one.rank for one in read.summaries] == [1]
    (told,) = read.failures
    assert told.path.startswith(str(second))
    assert "names itself rank 1" in told.message


def test_tables_stand_in_for_a_trace_that_is_missing(tmp_path: Path) -> None:
    run = write_cluster(tmp_path / "run")
    (rank_folder(run, 2) / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").unlink()
    found = report(run)
    assert [row.path.endswith("trace_view.json") for row in found.ranks] == [True, True, False, True]
    assert found.ranks[2].compute_ns == 6_000_250


@pytest.mark.parametrize("content", [b"", b"[", b'[{"ph": "X", "ts": "1704161511420289.011", "pid": 1, "na', b"{}"])
def test_a_damaged_trace_is_told_and_its_tables_stand_in(content: bytes, tmp_path: Path) -> None:
    run = write_cluster(tmp_path / "run")
    damaged = rank_folder(run, 1) / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
    damaged.write_bytes(content)
    found = report(run)
    assert [one.path for one in found.failures] == [str(damaged)]
    assert [row.rank for row in found.ranks] == [0, 1, 2, 3]
    assert found.ranks[1].compute_ns == 6_000_250


@pytest.mark.parametrize("traces", [True, False])
@pytest.mark.parametrize("inside", ["", "ASCEND_PROFILER_OUTPUT", "ASCEND_PROFILER_OUTPUT/"])
def test_the_folder_of_one_rank_is_that_rank(inside: str, traces: bool, tmp_path: Path) -> None:
    folder = rank_folder(write_cluster(tmp_path / "run", traces=traces), 3)
    found = report(f"{folder}/{inside}")
    assert [row.rank for row in found.ranks] == [3]
    assert (found.ranks[0].exposed_ns, found.world_size) == (1_000_000, 4)


def test_a_run_in_a_remote_store_is_found_too() -> None:
    import fsspec

    store = fsspec.filesystem("memory")
    with tempfile.TemporaryDirectory() as folder:
        store.put(str(write_cluster(Path(folder) / "run")), "/ascend/run", recursive=True)
    try:
        found = report("memory://ascend/run")
    finally:
        store.rm("/ascend", recursive=True)
    assert [row.rank for row in found.ranks] == [0, 1, 2, 3]
    assert len(found.domains) == 4
    assert len(found.links) == 8


def test_a_run_in_an_archive_is_found_too(tmp_path: Path) -> None:
    write_cluster(tmp_path / "run")
    shutil.make_archive(str(tmp_path / "sent"), "zip", tmp_path, "run")
    found = report(f"zip://run::{tmp_path}/sent.zip")
    assert [row.rank for row in found.ranks] == [0, 1, 2, 3]
    assert (len(found.domains), len(found.links)) == (4, 8)
    assert load_profile(f"zip://run::{tmp_path}/sent.zip", cache=False).trace.ranks == [0, 1, 2, 3]


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe", b"[1, 2]", b'{"step7": ', b"a,b\n1,2\n", b"[" * 100_000])
@pytest.mark.parametrize("name", ["step_trace_time.csv", "communication.json", "communication_matrix.json"])
def test_a_damaged_table_is_told_and_the_rest_goes_on(name: str, content: bytes, tmp_path: Path) -> None:
    run = write_cluster(tmp_path / "run", traces=False)
    damaged = rank_folder(run, 1) / "ASCEND_PROFILER_OUTPUT" / name
    damaged.write_bytes(content)
    found = report(run)
    assert [row.rank for row in found.ranks] == [0, 1, 2, 3]
    assert [(one.path, one.rank) for one in found.failures] == [(str(damaged), 1)]
    assert found.failures[0].message.startswith(f"{damaged}: ")
    assert found.ranks[3].compute_ns == 9_000_500
    assert sum(row.here for row in found.domains) == (6 if name == "communication.json" else 8)


JUNK = ["x", None, -1, 1e300, float("nan"), float("inf"), [], {}, True, "9" * 5000, "-3", "1e400"]


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: repr(junk)[:12])
def test_a_value_that_cannot_be_one_is_none(junk: Any, tmp_path: Path) -> None:
    run = write_cluster(tmp_path / "run", traces=False)
    folder = rank_folder(run, 0)
    output = folder / "ASCEND_PROFILER_OUTPUT"

    def spoil(value: Any, depth: int) -> Any:
        """Junk in each place of one depth."""
        if depth == 0:
            return junk
        return {key: spoil(one, depth - 1) for key, one in value.items()} if isinstance(value, dict) else value

    for name in ("communication.json", "communication_matrix.json"):
        whole = json.loads((output / name).read_text())
        for depth in range(1, 6):
            (output / name).write_text(json.dumps(spoil(whole, depth)))
            found = report(run)
            assert [row.rank for row in found.ranks] == [0, 1, 2, 3]
            assert found.failures == []
            assert all(row.elapsed_ns >= 0 and row.wait_ns >= 0 for row in found.domains)
            assert all(row.bytes >= 0 and row.time_ns >= 0 for row in found.links)
            msgspec.json.encode(found)
        (output / name).write_text(json.dumps(whole))
    whole = json.loads((folder / "profiler_metadata.json").read_text())
    for depth in range(1, 5):
        (folder / "profiler_metadata.json").write_text(json.dumps(spoil(whole, depth)))
        assert [row.rank for row in report(run).ranks] == [0, 1, 2, 3]


@pytest.mark.parametrize("value", ["", "x", "-5", "nan", "inf", "1e300", "1726054679554437.8", "0x10", "٣"])
def test_a_cell_that_cannot_be_a_time_is_none(value: str, tmp_path: Path) -> None:
    run = write_cluster(tmp_path / "run", traces=False)
    table = rank_folder(run, 0) / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv"
    table.write_text(f"Step,Computing,Free\n7,{value},10\n\n8,\n")
    row = report(run).ranks[0]
    assert row.compute_ns in (0, 1_500)
    assert row.idle_ns == 5_000


def test_only_one_step_is_looked_at(tmp_path: Path) -> None:
    found = report(write_cluster(tmp_path / "run", traces=False), step=8)
    assert {row.steps for row in found.ranks} == {1}
    assert {row.bytes for row in found.links} == {10_000_000}
    assert sum(row.calls for row in found.domains) == 12


@pytest.mark.parametrize("name", ["tables", "databases", "msprof-analyze"])
def test_a_step_that_there_is_not_is_told(name: str, tmp_path: Path) -> None:
    run = FORMS[name](tmp_path / "run")
    with pytest.raises(OptionError, match="no such step; there are: 7, 8"):
        report(run, step=9)
    assert {row.steps for row in report(run, step=7).ranks} == {1}


@pytest.mark.parametrize("width", [40, 80, 120])
def test_names_of_strangers_do_nothing_to_a_terminal(width: int, tmp_path: Path) -> None:
    run = write_cluster(tmp_path / "run", traces=False)
    hostile = "\x1b[31mtp\r\n\u202e|" + "x" * 400
    for rank in range(4):
        folder = rank_folder(run, rank)
        for path in (
            folder / "profiler_metadata.json",
            folder / "ASCEND_PROFILER_OUTPUT" / "communication_matrix.json",
        ):
            text = path.read_text().replace('"tp"', json.dumps(hostile)).replace('"RDMA"', json.dumps(hostile))
            path.write_text(text)
    found = report(run)
    for by in (None, "domain", "link"):
        text = ranks_text(found, by=by, width=width)
        assert not any(sign in text for sign in "\x1b\r\u202e")
        assert width < 80 or max(wcswidth(line) for line in text.splitlines()) <= width
    assert json.loads(ranks_json(found))["domains"][1]["domain"] == hostile


def test_a_report_of_tables_alone_says_where_they_are_shown(tmp_path: Path) -> None:
    with pytest.raises(NoTraceError, match="`deepscope ranks` shows them"):
        load_profile(write_cluster(tmp_path / "run", traces=False), cache=False)


def test_of_two_recordings_of_a_rank_the_newer_counts(tmp_path: Path) -> None:
    run = write_cluster(tmp_path / "run", traces=False)
    old = rank_folder(run, 3, "20230101000000")
    shutil.copytree(rank_folder(run, 3), old)
    table = old / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv"
    table.write_text("Step,Computing\n1,1\n")
    os.utime(table)
    assert report(run).ranks[3].compute_ns == 9_000_500


def test_ranks_are_known_by_their_folders_and_else_counted(tmp_path: Path) -> None:
    run = write_cluster(tmp_path / "run", traces=False)
    for rank in (0, 1, 2):
        (rank_folder(run, rank) / f"profiler_info_{rank}.json").unlink()
    rank_folder(run, 2).rename(run / "host_rank2_20240102021151_ascend_pt")
    found = report(run)
    assert {row.rank: "rank2" in row.path for row in found.ranks} == {0: False, 1: False, 2: True, 3: False}


def test_what_is_known_of_groups_is_made_of_transfers_within_a_device(tmp_path: Path) -> None:
    run = write_cluster(tmp_path / "run", traces=False)
    for rank in range(4):
        (rank_folder(run, rank) / "profiler_metadata.json").unlink()
    found = report(run)
    assert {(row.source, row.target) for row in found.links} == {
        (0, 1), (1, 0), (2, 3), (3, 2), (0, 2), (2, 0), (1, 3), (3, 1)
    }  # fmt: skip
    assert {(row.domain, row.ranks) for row in found.domains} == {("", "0-1"), ("", "2-3"), ("", "0, 2"), ("", "1, 3")}


def test_communicators_are_numbered_as_by_hccl() -> None:
    name = "10.1.0.1%eth0_55000_0_1704161511"
    assert group_key(name) == key_of(name)
    assert group_key("a") == str(97 << 32 | 97)


def test_a_folder_without_anything_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "profiler_info.txt").write_text("")
    with pytest.raises(NoTraceError):
        read_ranks(tmp_path, cache=False)


def test_other_runs_have_no_domains(tmp_path: Path) -> None:
    TraceBuilder(distributedInfo={"rank": 0, "world_size": 1}).op("aten::mm", 0, 10).write(tmp_path / "a.pt.trace.json")
    found = report(tmp_path)
    assert found.domains == found.links == []
