"""Every setting, changed while the server runs."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from lsp_editor import Editor, editing, run
from lsp_profiles import record
from trace_builder import TraceBuilder

LINES = (6, 7, 11, 12)


def name(number: int, rank: int = 0, stage: str = "fit") -> str:
    return f"w.{stage}.rank{rank}.{1_760_000_000_000_000_000 + number}.pt.trace.json"


async def hinted(editor: Editor, uri: str) -> Any:
    return sorted(await editor.hints(uri))


async def pulled(editor: Editor, uri: str) -> Any:
    return [
        (one.range.start.line + 1, str(one.code), one.severity and one.severity.name) for one in await editor.pull(uri)
    ]


async def lensed(editor: Editor, uri: str) -> Any:
    document = types.TextDocumentIdentifier(uri)
    found = await editor.text_document_code_lens_async(types.CodeLensParams(document))
    return [one.range.start.line + 1 for one in found or ()]


async def hovered(editor: Editor, uri: str) -> Any:
    return bool(await editor.hover(uri, 6, 10))


COLD = [(number, "hot-line", "Hint") for number in (6, 7, 11)]
IDLE = [(12, "DS005", "Warning")]
HOTTEST = [(12, "hot-line", "Hint")]
ALL = COLD + IDLE + HOTTEST


@pytest.mark.parametrize(
    ("settings", "ask", "before", "after"),
    [
        ({"inlayHints": "off"}, hinted, [*LINES], []),
        ({"threshold": 0.15}, hinted, [*LINES], [6, 11, 12]),
        ({"threshold": 0.9, "inlayHints": "all"}, hinted, [*LINES], [*LINES]),
        ({"hover": False}, hovered, True, False),
        ({"codeLens": False}, lensed, [5, 10, 4], []),
        ({"threshold": 0.4}, lensed, [5, 10, 4], [10]),
        ({"diagnostics": "off"}, pulled, ALL, []),
        ({"diagnostics": "findings"}, pulled, ALL, IDLE),
        ({"diagnostics": "hotLines"}, pulled, ALL, COLD + HOTTEST),
        ({"threshold": 0.1}, pulled, ALL, COLD[:1] + IDLE + HOTTEST),
        ({"hide": ["hot-line:train.py"]}, pulled, ALL, IDLE),
        ({"hide": ["hot-line:other.py", "DS005"]}, pulled, ALL, COLD + HOTTEST),
    ],
)
def test_what_is_shown_follows_a_setting(
    root: Path, tmp_path: Path, settings: Any, ask: Callable[[Editor, str], Any], before: Any, after: Any
) -> None:
    async def scenario() -> None:
        record(root)
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            assert await ask(editor, uri) == before
            await editor.set(settings)
            assert await ask(editor, uri) == after
            await editor.set(None)
            assert await ask(editor, uri) == before

    run(scenario())


async def shown(editor: Editor, settings: Any, part: str) -> dict[str, Any]:
    """Changes settings and waits until a trace is shown whose path has this part."""
    editor.settings = settings
    editor.statuses.clear()
    editor.workspace_did_change_configuration(types.DidChangeConfigurationParams({}))

    def holds() -> bool:
        last = editor.statuses[-1] if editor.statuses else {"state": "", "trace": None}
        return last["state"] == "ready" and part in (last["trace"] or {"path": ""})["path"]

    await editor.until(holds, f"{part} is shown")
    trace: dict[str, Any] = editor.statuses[-1]["trace"]
    return trace


def test_which_trace_is_shown_follows_the_settings(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        record(root, name=name(1), rank=0, world_size=2, run_id="r")
        record(root, name=name(2, 1), rank=1, world_size=2, run_id="r", scale=3)
        record(root, name=name(3, 0, "validate"), rank=0, world_size=2, run_id="r", stage="validate", scale=5)
        other = record(tmp_path / "elsewhere", name=name(0), scale=7)
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "train.py")
            status = await editor.until_ready()
            assert (status["trace"]["ranks"], status["trace"]["stage"]) == ([0, 1], "fit")
            assert (await shown(editor, {"show": {"rank": 1}}, name(2, 1)))["ranks"] == [1]
            assert (await editor.hints(uri))[6] == "114 µs · 19 %"
            assert (await shown(editor, {"show": {"stage": "validate"}}, "validate"))["stage"] == "validate"
            assert (await shown(editor, {"show": {"rank": 0, "step": 1}}, name(1)))["step"] == 1
            await shown(editor, {"show": {"trace": str(other)}}, str(other))
            assert (await editor.hints(uri))[6] == "266 µs · 19 %"
            await shown(editor, {"traces": ["nothing/here", str(other.parent / "*.json")]}, str(other))
            assert (await shown(editor, {}, name(1)))["ranks"] == [0, 1]

    run(scenario())


def test_peaks_give_a_line_its_word(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        train = str(root / "train.py")
        builder = TraceBuilder(deviceProperties=[{"id": 0, "name": "Some GPU"}])
        builder.line(train, 6, "Net.forward", 0, 1000)
        builder.op("aten::mm", 100, 500, dims=[[512, 512], [512, 512]], **{"Input type": ["float", "float"]})
        (root / "deepscope_logs").mkdir()
        builder.kernel("sgemm", 200, 1000, 100_000).write(root / "deepscope_logs" / name(1))
        async with editing(root, cache=tmp_path / "cache", settings={"inlayHints": "all"}) as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            assert "Cause: unknown, the device's peaks are not known" in await editor.hover(uri, 6, 2)
            for peaks, words in (
                (
                    "fp32=10,bandwidth=1",
                    "**compute-bound**: 2.68 TFLOP/s, 27 % of the Some GPU's in float32; 85.3 FLOP",
                ),
                ("fp32=1000,bandwidth=0.1", "**memory-bound**: 31.5 GB/s, 31 % of the Some GPU's; 85.3 FLOP"),
            ):
                await shown(editor, {"peaks": peaks}, name(1))
                hover = await editor.hover(uri, 6, 2)
                assert words in hover

    run(scenario())


def test_a_stage_and_a_rank_that_are_not_there_are_named_in_the_words_of_the_settings(
    root: Path, tmp_path: Path
) -> None:
    async def scenario() -> None:
        record(root, rank=0, run_id="r")
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            for settings, words in (
                (
                    {"show": {"stage": "predict"}},
                    "deepscope.show.stage predict: this run has no such stage; it has: fit",
                ),
                ({"show": {"rank": 5}}, "deepscope.show.rank 5: no trace of this rank; there are: 0"),
                ({"show": {"step": 77}}, "deepscope.show.step 77: no such step; it has 1"),
            ):
                editor.settings = settings
                editor.workspace_did_change_configuration(types.DidChangeConfigurationParams({}))
                await editor.until(
                    lambda words=words: len([one for one in editor.messages if words in one]) == 1, f"{words} is told"
                )
                assert (await editor.hints(uri))[6] == "38 µs · 19 %"  # what was shown stays
            await shown(editor, {}, "rank0")
            assert len(editor.messages) == 3

    run(scenario())


def test_what_is_whole_of_a_cut_trace_is_shown_where_that_is_set(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        path = record(root)
        text = path.read_text(encoding="utf-8")
        path.write_text(text[: text.rindex("{")], encoding="utf-8")
        os.utime(path, (1_760_000_000, 1_760_000_000))
        async with editing(root, cache=tmp_path / "cache") as editor:
            await editor.until(lambda: bool(editor.messages), "it is told")
            assert "with deepscope.show.partial" in editor.messages[0]
            trace = await shown(editor, {"show": {"partial": True}}, path.name)
            assert trace["deviceNs"] > 0
            assert len(editor.messages) == 1

    run(scenario())


def test_bad_values_are_named_once_each_and_the_defaults_used(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        record(root)
        bad = {
            "inlayHints": "loud",
            "threshold": 7,
            "traces": "runs",
            "watchSeconds": "never",
            "diagnostics": {"warningShare": 0.5},
            "pathMappings": {"/a": 3},
        }
        async with editing(root, cache=tmp_path / "cache", settings=bad) as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            assert await hinted(editor, uri) == [*LINES]
            assert await pulled(editor, uri) == ALL
            for _ in range(3):
                editor.workspace_did_change_configuration(types.DidChangeConfigurationParams({}))
                await editor.command("status")
            names = ["inlayHints", "threshold", "traces", "watchSeconds", "diagnostics", "pathMappings"]
            assert sorted(one.partition("deepscope.")[2].partition(":")[0] for one in editor.messages) == sorted(names)

    run(scenario())
