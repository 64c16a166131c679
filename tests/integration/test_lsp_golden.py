"""Golden answers of every feature: on a built trace, on one recorded by real torch, and on traces of other machines."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deepscope.records import Profile
from deepscope.store import load_profile
from golden import matches_golden
from lsp_answers import every_answer
from lsp_editor import editing, run
from lsp_profiles import SOURCE, record
from recorded_traces import SHARED_TRACES, needs_shared_traces

OLD = (1_400_000_000, 1_400_000_000)
ALL = {"inlayHints": "all", "highlights": True}


def placeless(text: str, *folders: Path) -> str:
    """Without what is this machine's: where the workspace and the traces lie."""
    for number, folder in enumerate(folders):
        for name in (folder.as_uri(), str(folder)):
            text = text.replace(name, f"<folder {number}>")
    text = re.sub(r'"sizeWords": "[^"]+"', '"sizeWords": …', text)
    return re.sub(r'"sizeBytes": \d+', '"sizeBytes": …', text)  # a trace holds the folder's name


def test_a_built_trace(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = tmp_path / "project"
        root.mkdir()
        (root / "train.py").write_text(SOURCE, encoding="utf-8")
        record(root)
        async with editing(root, cache=tmp_path / "cache", settings=ALL) as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            text = await every_answer(editor, uri, line=6, definition=5, name="forward")
            matches_golden(placeless(text, root), "lsp/built.txt")

    run(scenario())


def stand_in(profile: Profile, root: Path) -> tuple[Path, int, int, str]:
    """A file where the trace's hottest file lay, with the recorded functions at their lines; a line and a function."""
    hottest = max(profile.lines, key=lambda line: line.self_device_ns)
    functions = {one.line: one.function for one in profile.functions if one.file == hottest.file}
    names = {line: name.rsplit(".", 1)[-1].strip("<>") for line, name in functions.items()}
    rows = [f"def {names[line]}():" if line in names else f"    pass  # {line}" for line in range(1, max(names) + 2)]
    file = root.joinpath(*hottest.file.replace("\\", "/").strip("/").split("/")[-2:])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(rows), encoding="utf-8")
    os.utime(file, OLD)
    definition = max(functions, key=lambda line: line == hottest.line)
    return file, hottest.line, definition, names[definition]


TRACES = [
    "torch-profiling-tutorial-dc3b0e7228dd_851.1752215573993169006",
    "kineto-resnet50_num_workers_0-worker0.1623143089861",
    "tracelens-mi300-resnet_act_checkpoint",
]


@needs_shared_traces
@pytest.mark.parametrize("name", TRACES)
def test_a_trace_of_another_machine(tmp_path: Path, name: str) -> None:
    async def scenario() -> None:
        assert SHARED_TRACES is not None
        trace = SHARED_TRACES / f"{name}.json.gz"
        root = tmp_path / "project"
        root.mkdir()
        file, line, definition, function = stand_in(load_profile(trace), root)
        async with editing(root, cache=tmp_path / "cache", settings={**ALL, "show": {"trace": str(trace)}}) as editor:
            uri = editor.open(file)
            await editor.until_ready()
            text = await every_answer(editor, uri, line=line, definition=definition, name=function)
            matches_golden(placeless(text, root, trace.parent), f"lsp/{name}.txt")

    run(scenario())


PROGRAM = """\
import torch
import deepscope


def heavy(x):
    for _ in range(20):
        x = torch.mm(x, x) / x.numel()
    return x


def train(x):
    return heavy(x).sum()


if __name__ == "__main__":
    x = torch.rand(600, 600)
    with deepscope.profile("deepscope_logs", wait=0, warmup=1, active=2) as recording:
        for _ in recording.iterate(range(3)):
            train(x)
"""


def test_a_trace_recorded_by_torch_on_this_machine(tmp_path: Path) -> None:
    """What holds a line back and which small lines have a word hang on the machine: no snapshot has them."""

    async def scenario() -> None:
        root = tmp_path / "project"
        root.mkdir()
        program = root / "train.py"
        program.write_text(PROGRAM, encoding="utf-8")
        subprocess.run([sys.executable, str(program)], cwd=root, check=True, capture_output=True)
        # What is far from every threshold: the times of a busy machine must not decide.
        settings = {"threshold": 0.3, "diagnostics": "hotLines"}
        async with editing(root, cache=tmp_path / "cache", settings=settings) as editor:
            uri = editor.open(program)
            status = await editor.until_ready()
            assert status["trace"]["metric"] == "cpu_self"
            text = placeless(await every_answer(editor, uri, line=7, definition=5, name="heavy"), root)
        answers = dict(re.findall(r"^== (.+)\n((?:(?!== ).*\n)*)", text, flags=re.MULTILINE))
        hints = re.findall(r"(?m)^(\d+):\d+ .* \| .*\bcost, of operators and Python on the CPU", answers["inlay hints"])
        assert hints == ["7", "12", "19"]
        assert re.findall(r"(?m)^(\d+):0-.* operators .*, cost ", answers["code lenses"]) == ["5", "11", "1"]
        hover = answers["hover on line 7"]
        assert re.match(r"\*\*heavy, line 7\*\*: [\d.]+ [mµ]?s per step, \d+ % of the run's cost(  )?\n", hover)
        assert re.search(r"(?m)^- `aten::mm` [\d.]+ [mµ]?s \(40 calls\)$", hover)
        assert "[train.py:12](<folder 0>/train.py#L12) train " in hover
        assert hover.rstrip().endswith("; the text is what ran")
        assert re.match(r"\*\*heavy\*\*: [\d.]+ [mµ]?s per step, ", answers["hover on heavy"])
        assert "Defined at [train.py:5](<folder 0>/train.py#L5)" in answers["hover on heavy"]
        hot = r"7:8-7:38 hot-line Hint Hot line: \d+ % of the run's cost, .* per step: operators .*\n"
        assert re.match(hot, answers["diagnostics"])
        assert "12:0-12:0 called from train, " in answers["diagnostics"]
        assert answers["code actions on hot-line"].split("\n")[0] == "Show callers (DeepScope)"
        assert answers["workspace symbols"].startswith("heavy (Function, operators ")

    run(scenario())
