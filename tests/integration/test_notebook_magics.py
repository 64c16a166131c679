"""`%%deepscope` in a real kernel: what its lines cost stands below the cell, which does what it does without it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

pytestmark = pytest.mark.filterwarnings("ignore")

SETUP = """%load_ext deepscope
import torch
torch.manual_seed(1)
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
data = [torch.randn(32, 64) for _ in range(10)]"""
TRAIN = """
for x in data:
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
float(loss.detach())"""


def executed(folder: Path, *cells: str) -> list[Any]:
    """The outputs of each cell."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    nbclient.NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        allow_errors=True,
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    return [cell.outputs for cell in notebook.cells]


def shown(outputs: list[Any]) -> tuple[str, str]:
    """The page below a cell, as HTML and as text."""
    (page,) = [one.data for one in outputs if one.output_type == "display_data"]
    return page.get("text/html", ""), page["text/plain"]


def result(outputs: list[Any]) -> str:
    return next((str(one.data["text/plain"]) for one in outputs if one.output_type == "execute_result"), "")


def lines_with_time(page: str) -> dict[int, str]:
    """The lines of the cell that cost time, with their text."""
    rows = re.findall(r'<tr><td class="n">(\d+)</td><td class="n">([^<]*)</td>.*?<td>([^<]*)</td></tr>', page)
    return {int(number): text.strip() for number, share, text in rows if share}


def test_a_cell_shows_its_steps_and_does_what_it_does_without_the_magic(tmp_path: Path) -> None:
    _, plain, _, recorded, line, whole, asked, there, again = executed(
        tmp_path,
        SETUP,
        TRAIN,
        SETUP,
        f"%%deepscope\n{TRAIN}",
        "%deepscope model(data[0]).sum()",
        "%%deepscope --whole\nwith torch.no_grad():\n    y = model(data[0])",
        f"%%deepscope --folder kept --active 2\n{TRAIN}",
        "import os; print(os.listdir('.'))\ny.shape",
        f"%%deepscope\n{TRAIN}",
    )
    assert result(recorded) == result(plain), "bit-identical"
    page, text = shown(recorded)
    assert lines_with_time(page).keys() >= {4, 5, 6}, "of the cell, which has an empty line below the magic"
    assert lines_with_time(page)[4] == "loss = model(x).square().mean()"
    assert "time     3 steps (2-4)" in text
    assert "run_cell_magic" not in text + page, "the call of the magic is no user's work"
    assert "<b>Runs on the CPU: " in page
    assert "aten::addmm" in page, "the flame graph goes down to operators"
    assert lines_with_time(shown(line)[0]) == {1: "model(data[0]).sum()"}
    assert result(line).startswith("tensor(")
    assert 3 in lines_with_time(shown(whole)[0])
    assert "2 steps" in shown(asked)[1]
    assert result(there) == "torch.Size([32, 64])", "what a recorded cell assigns is the user's"
    printed = "".join(one.text for one in there if one.output_type == "stream")
    assert printed.startswith("['kept']"), "nothing is written unless it was asked for"
    assert "time     3 steps" in shown(again)[1], "a second cell is recorded, too"


def test_what_goes_wrong_is_told_as_without_the_magic(tmp_path: Path) -> None:
    _, failed, syntax, option, idle, help_text, after = executed(
        tmp_path,
        SETUP,
        "%%deepscope --whole\nx = 1\nx / 0",
        "%%deepscope\nfor",
        "%%deepscope --nonsense\n1",
        "%%deepscope\nx = 3",
        "%%deepscope --help\nx = 4",
        "import sys; (x, sys.gettrace())",
    )
    (error,) = [one for one in failed if one.output_type == "error"]
    trace = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(error.traceback))
    assert error.ename == "ZeroDivisionError"
    assert re.search(r"--> 3 x ?/ ?0", trace), "at its own line"
    assert "magics.py" not in trace
    assert [one.ename for one in syntax if one.output_type == "error"] == ["SyntaxError"]
    assert "No such option" in "".join(one.get("text", "") for one in option)
    assert "recorded nothing" in shown(idle)[1]
    assert "--whole" in "".join(one.get("text", "") for one in help_text)
    assert result(after) == "(3, None)", "the cell of --help did not run, and nothing is left installed"


@pytest.mark.thorough
def test_names_out_of_a_cell_are_text(tmp_path: Path) -> None:
    names = ["<script>alert(1)</script>", "</td><img src=x onerror=alert(2)>"]
    cells = [
        f"%%deepscope --whole\nwith torch.profiler.record_function({name!r}):\n    model(data[0])  # {name}"
        for name in names
    ]
    _, *outputs = executed(tmp_path, SETUP, *cells)
    for number, (name, below) in enumerate(zip(names, outputs, strict=True), 1):
        page, _ = shown(below)
        assert f"alert({number})" in page
        assert name not in page
