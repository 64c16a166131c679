"""Loading, watching, choosing and comparing traces, with the editor as the only witness."""

import gzip
import os
import shlex
import time
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from deepscope.quantities import TIMES
from deepscope.records.findings import Try
from deepscope.store.companion_files import keep_tries
from deepscope.trace.format.run_account import PartAccount, RunAccount, account_path, encoded_account
from lsp_editor import Editor, capabilities, editing, run
from lsp_profiles import record
from recorded_traces import SHARED_TRACES, needs_shared_traces

QUICK = {"watchSeconds": 0.4}


def name(number: int, rank: int = 0) -> str:
    return f"w.fit.rank{rank}.{1_760_000_000_000_000_000 + number}.pt.trace.json"


def shows(editor: Editor, part: str) -> bool:
    trace = editor.statuses[-1]["trace"] if editor.statuses else None
    return bool(trace) and part in trace["path"] and editor.statuses[-1]["state"] == "ready"


async def changed(editor: Editor, path: Path) -> None:
    change = types.FileEvent(path.as_uri(), types.FileChangeType.Created)
    editor.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([change]))


def test_a_new_trace_is_found_by_polling(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with editing(root, cache=tmp_path / "cache", settings=QUICK) as editor:
            uri = editor.open(root / "train.py")
            await editor.until(lambda: any(one["state"] == "none" for one in editor.statuses), "there is no trace yet")
            assert await editor.hints(uri) == {}
            record(root, name=name(1))
            await editor.until(lambda: shows(editor, name(1)), "the new trace is shown")
            record(root, name=name(2), scale=2)
            await editor.until(lambda: shows(editor, name(2)), "the newer trace is shown")
            assert (await editor.hints(uri))[6] == "76 µs · 19 %"

    run(scenario())


def test_the_verdict_is_on_the_whole_run_once_that_has_ended(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with editing(root, cache=tmp_path / "cache", settings=QUICK) as editor:
            trace = record(root, name=name(1))
            await editor.until(lambda: shows(editor, name(1)), "the trace is shown")
            before = editor.statuses[-1]["trace"]["verdict"]
            parts = [PartAccount("steps", 2_000_000_000, 20), PartAccount("evaluation", 6_000_000_000, 3)]
            account_path(trace).write_bytes(encoded_account(RunAccount(8_000_000_000, parts, 0, [])))
            seldom = "validate less often, or on fewer batches"
            words = f"Validation takes 75.0 % of the run: 3 times, 2 s each; {seldom}. {before}"
            await editor.until(lambda: editor.statuses[-1]["trace"]["verdict"] == words, "the run has ended")

    run(scenario())


def test_what_a_finding_proposes_is_tried_and_its_result_stands_there(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        trace = record(root, program="train.py")
        async with editing(root, cache=tmp_path / "cache", settings=QUICK) as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            (finding,) = [one for one in await editor.pull(uri) if one.code == "DS005"]
            action = (await editor.actions(uri, finding))["Try what answers DS005 (DeepScope)"].command
            assert action is not None
            answer = await editor.workspace_execute_command_async(
                types.ExecuteCommandParams(action.command, action.arguments)
            )
            words = ["try", "DS005", "--trace", str(trace), "--", str(root / "train.py")]
            assert answer == {"arguments": words, "folder": str(root), "program": str(root / "train.py")}
            assert await editor.command("tryCommand", code="DS005") == answer
            assert editor.messages == [f"Run: {shlex.join(['deepscope', *words])}"]
            with pytest.raises(JsonRpcException, match="none of its remedies can be applied from outside"):
                await editor.command("tryCommand", code="DS034")

            before = editor.refreshes
            tried = Try(finding="DS005", remedy="a: b()", verdict="faster", speedup=1.25, interval=(1.2, 1.3))
            keep_tries(trace, [tried])
            await editor.until(lambda: editor.refreshes > before, "what was tried is found")
            said = f"Tried: 1.25 {TIMES} ± 0.05 (a: b()): faster, losses not comparable."
            (finding,) = [one for one in await editor.pull(uri) if one.code == "DS005"]
            assert finding.message.endswith(said)
            assert "Tried: 1.25" in await editor.hover(uri, 12, 6)

    run(scenario())


@pytest.mark.parametrize("program", ["", "notebook", "gone.py", "-c"])
def test_a_program_that_is_not_here_cannot_be_tried(root: Path, tmp_path: Path, program: str) -> None:
    async def scenario() -> None:
        record(root, program=program)
        async with editing(root, cache=tmp_path / "cache", settings=QUICK) as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            (finding,) = [one for one in await editor.pull(uri) if one.code == "DS005"]
            assert not [title for title in await editor.actions(uri, finding) if "Try" in title]

    run(scenario())


def test_a_new_trace_is_found_by_the_editors_watching(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        (root / "deepscope_logs").mkdir()
        settings = {"traces": ["deepscope_logs"]}
        async with editing(
            root, cache=tmp_path / "cache", settings=settings, client=capabilities(watch=True)
        ) as editor:
            await editor.until(
                lambda: types.WORKSPACE_DID_CHANGE_WATCHED_FILES in editor.registered, "watching is asked for"
            )
            await editor.until(lambda: any(one["state"] == "none" for one in editor.statuses), "there is no trace yet")
            await changed(editor, record(root))
            await editor.until_ready()

    run(scenario())


def test_what_the_editor_misses_where_it_watches_is_found_all_the_same(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = {"traces": ["runs"], "watchSeconds": 0.2}
        async with editing(
            root, cache=tmp_path / "cache", settings=settings, client=capabilities(watch=True)
        ) as editor:
            await editor.until(
                lambda: types.WORKSPACE_DID_CHANGE_WATCHED_FILES in editor.registered, "watching is asked for"
            )
            await editor.until(lambda: any(one["state"] == "none" for one in editor.statuses), "there is no trace yet")
            trace = record(root)
            (root / "runs" / "x").mkdir(parents=True)
            trace.rename(root / "runs" / "x" / "profile.json")  # and the editor says nothing of it
            assert (await editor.until_ready())["trace"]["path"].endswith("profile.json")

    run(scenario())


def test_the_newest_good_trace_is_found_behind_many_broken_ones(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        good = record(root, name=name(0))
        for number in range(1, 8):
            bad = root / "deepscope_logs" / f"bad{number}.{1_790_000_000_000_000_000 + number}.pt.trace.json"
            bad.write_text('{"traceEvents": [{"ph": "X"', encoding="utf-8")
            os.utime(bad, (1_760_000_000, 1_760_000_000))
        async with editing(root, cache=tmp_path / "cache", settings=QUICK) as editor:
            assert (await editor.until_ready())["trace"]["path"] == str(good)
            assert len(editor.messages) == 1
            told = [one["message"].partition(": ")[0] for one in editor.statuses if one["state"] == "loading"]
            assert told == [f"{number} of 8" for number in range(1, 9)]
            problems = {one["name"]: bool(one["problem"]) for one in await editor.command("listTraces")}
            assert [name for name, is_broken in problems.items() if not is_broken] == [good.name]
            tried = len([one for one in editor.statuses if one["state"] == "loading"])
            record(root, name="last.1795000000000000000.pt.trace.json", recorded_at="2026-11-18T00:00:00+00:00")
            await editor.until(lambda: shows(editor, "last."), "a newer one")
            (root / "deepscope_logs" / "last.1795000000000000000.pt.trace.json").unlink()
            await editor.until(lambda: shows(editor, name(0)), "the good one again")
            again = len([one for one in editor.statuses if one["state"] == "loading"]) - tried
            assert again == 2, "what is broken is not tried again"

    run(scenario())


def test_a_run_of_code_that_is_not_here_does_not_hide_the_users_own(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        text = "def main(argv):\n    return 1\n" * 9
        own = record(root, name=name(1))
        foreign = record(
            root,
            name="theirs.1795000000000000000.pt.trace.json",
            file="/home/somebody/else/train.py",
            text=text,
            project_root="/home/somebody/else",
            program="theirs.py",
            run_id="theirs",
            recorded_at="2026-11-18T00:00:00+00:00",
        )
        async with editing(root, cache=tmp_path / "cache", settings=QUICK) as editor:
            uri = editor.open(root / "train.py")
            status = await editor.until_ready()
            assert status["trace"]["path"] == str(own)
            assert (status["newer"]["path"], status["newer"]["program"]) == (str(foreign), "theirs.py")
            assert (await editor.hints(uri))[6] == "38 µs · 19 %"
            status = await editor.command("selectTrace", path=str(foreign))
            assert (status["trace"]["path"], status["newer"]) == (str(foreign), None)
            await editor.command("selectTrace")
            own.unlink()
            await editor.until(lambda: shows(editor, "theirs"), "with nothing else it is shown")
            assert editor.statuses[-1]["newer"] is None

    run(scenario())


def test_a_burst_of_files_is_one_load_of_all_ranks(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with editing(root, cache=tmp_path / "cache", settings=QUICK) as editor:
            uri = editor.open(root / "train.py")
            await editor.until(lambda: bool(editor.statuses), "it has looked")
            now = time.time()
            for rank in range(4):
                path = record(root, name=name(rank, rank), rank=rank, world_size=4, run_id="r", scale=rank + 1)
                os.utime(path, (now, now))
                await changed(editor, path)
            await editor.until_ready()
            assert editor.statuses[-1]["trace"]["ranks"] == [0, 1, 2, 3]
            assert len([one for one in editor.statuses if one["state"] == "loading"]) == 1
            hover = await editor.hover(uri, 6, 10)
            assert "Ranks: min 30 µs (rank 0), median 75 µs, max 120 µs (rank 3, the slowest)" in hover
            assert "median 100 µs, max 160 µs (rank 3, the slowest)" in await editor.hover(uri, 5, 9)
            assert (await editor.hints(uri))[6].startswith("95 µs")

    run(scenario())


def test_a_trace_still_being_written_is_left_alone_until_it_is_whole(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        whole = gzip.compress(record(root).read_bytes())
        (root / "deepscope_logs" / name(0)).unlink()
        path = root / "deepscope_logs" / (name(5) + ".gz")
        async with editing(root, cache=tmp_path / "cache", settings=QUICK) as editor:
            await editor.until(lambda: any(one["state"] == "none" for one in editor.statuses), "there is no trace yet")
            path.write_bytes(whole[: len(whole) // 2])
            await editor.until(
                lambda: any("still being written" in one["message"] for one in editor.statuses), "it is seen"
            )
            assert editor.messages == []
            path.write_bytes(whole)
            await editor.until_ready()
            assert editor.messages == []

    run(scenario())


def test_the_newest_whole_trace_is_shown_while_a_newer_one_is_not_whole(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        old = record(root, name=name(1))
        newest = record(
            root,
            name="last.1795000000000000000.pt.trace.json",
            recorded_at="2026-11-18T00:00:00+00:00",
            scale=2,
        )
        whole = newest.read_bytes()
        for text in (whole[: len(whole) // 2], b""):
            newest.write_bytes(text)
            now = time.time() + 3600  # as young as it can be, however slow this is
            os.utime(newest, (now, now))
            async with editing(root, cache=tmp_path / "cache", settings=QUICK) as editor:
                await editor.until(lambda: shows(editor, name(1)), "the older trace is shown")
                await editor.until(
                    lambda: editor.statuses[-1]["message"] == f"{newest}: still being written", "the newer one is named"
                )
                assert editor.statuses[-1]["trace"]["path"] == str(old)
                newest.write_bytes(whole)
                await editor.until(lambda: shows(editor, newest.name), "it is shown once it is whole")
                assert editor.messages == []

    run(scenario())


def test_traces_are_listed_chosen_remembered_and_let_go(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        old, new = (record(root, name=name(one), scale=one, program="train.py") for one in (1, 2))
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            listed = await editor.command("listTraces")
            assert [(one["path"], one["selected"]) for one in listed] == [(str(new), True), (str(old), False)]
            assert {one["program"] for one in listed} == {"train.py"}
            assert [one["stepNs"] for one in listed] == [400_000, None]
            status = await editor.command("selectTrace", path=f"deepscope_logs/{name(1)}")
            assert status["trace"]["path"] == str(old)
            assert (await editor.hints(uri))[6] == "38 µs · 19 %"
        async with editing(root, cache=tmp_path / "cache") as editor:
            assert (await editor.until_ready())["trace"]["path"] == str(old)
            status = await editor.command("selectTrace")
            assert status["trace"]["path"] == str(new)

    run(scenario())


def test_a_baseline_stands_beside_the_numbers(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        old = record(root, name=name(1))
        record(root, name=name(2), scale=2)
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            status = await editor.command("setBaseline", path=str(old))
            assert status["baseline"]["path"] == str(old)
            assert (await editor.hints(uri))[6] == "76 µs · 19 % · +38 µs (+100 %)"
            hover = await editor.hover(uri, 6, 10)
            assert "| cost | 76 µs | 19 % of the run's cost | 38 µs | +38 µs (+100 %) |" in hover
            assert f"Baseline: {name(1)}, recorded 2026-01-02 03:04:05" in hover
            await editor.command("clearBaseline")
            assert (await editor.hints(uri))[6] == "76 µs · 19 %"

    run(scenario())


def test_an_older_run_of_two_ranks_is_compared_with_and_shown_as_a_whole(root: Path, tmp_path: Path) -> None:
    """All runs lie in one folder, as they do by default: a run is neither its folder nor one of its traces."""

    async def scenario() -> None:
        for number, scale in ((1, 1), (2, 3)):
            for rank in (0, 1):
                record(
                    root,
                    name=name(number, rank),
                    rank=rank,
                    world_size=2,
                    run_id=f"r{number}",
                    scale=scale * (rank + 1),
                )
        old, *ranks = name(1, 0), 0, 1
        async with editing(root, cache=tmp_path / "cache", settings=QUICK) as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            chosen = str(root / "deepscope_logs" / old)
            status = await editor.command("setBaseline", path=chosen, run=True)
            assert status["baseline"]["ranks"] == ranks
            # The mean of a rank: 30 and 60 µs before, three times that now.
            assert (await editor.hints(uri))[6].startswith("171 µs · 19 % · +114 µs (+200 %)")
            alone = await editor.command("setBaseline", path=chosen)
            assert alone["baseline"]["ranks"] == [0]
            await editor.command("clearBaseline")
            status = await editor.command("selectTrace", path=chosen, run=True)
            assert status["trace"]["ranks"] == ranks
            assert status["trace"]["stepNs"] == 300_000  # the mean of a rank: steps of 200 and 400 µs
            assert (await editor.hints(uri))[6] == "57 µs · 19 %"
            listed = await editor.command("listTraces")
            assert {one["name"] for one in listed if one["selected"]} == {name(1, 0), name(1, 1)}
        async with editing(root, cache=tmp_path / "cache", settings=QUICK) as editor:  # a second start remembers it
            assert (await editor.until_ready())["trace"]["ranks"] == ranks
            assert editor.statuses[-1]["trace"]["path"].endswith(old)

    run(scenario())


def test_a_vanished_trace_leaves_its_numbers(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        path = record(root)
        async with editing(root, cache=tmp_path / "cache", settings=QUICK) as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            path.unlink()
            await editor.until(lambda: "gone" in editor.statuses[-1]["message"], "it is noticed")
            assert (await editor.hints(uri))[6] == "38 µs · 19 %"

    run(scenario())


@needs_shared_traces
def test_a_real_trace_of_another_machine(tmp_path: Path) -> None:
    assert SHARED_TRACES is not None
    trace = SHARED_TRACES / "tracelens-xdit_sd_3.5-profile_trace_rank_0.json.gz"

    async def scenario() -> None:
        root = tmp_path / "xDiT"
        file = root / "xfuser" / "model_executor" / "pipelines" / "base_pipeline.py"
        file.parent.mkdir(parents=True)
        file.write_text("\n" * 271 + "        def check_naive_forward_fn(self, *args, **kwargs):\n", encoding="utf-8")
        async with editing(root, cache=tmp_path / "cache", settings={"show": {"trace": str(trace)}}) as editor:
            uri = editor.open(file)
            await editor.until_ready()
            (label,) = [label for line, label in (await editor.hints(uri)).items() if line == 272]
            assert label.endswith("whole function (file newer than trace)")
            assert "numbers are those of the whole function" in await editor.hover(uri, 272, 12)

    run(scenario())
