"""Cells of a notebook are user code: recorded in a real kernel, with their text."""

import json
from pathlib import Path

import nbclient
import nbformat
import pytest

CELLS = [
    "import torch, deepscope\nx = torch.randn(64, 64)",
    "def f(x):\n    y = x @ x\n    return y.relu()",
    "with deepscope.profile('runs') as recording:\n    for _ in range(5):\n        f(x)",
    (
        "import json\n"
        "print('ANSWER' + json.dumps([(line.line, line.text.strip(), line.operators, line.exact)\n"
        "                             for line in recording.profile.lines if line.operators]))"
    ),
]


@pytest.mark.filterwarnings("ignore")
def test_the_lines_of_a_cell_stand_in_the_profile_with_their_text(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    client = nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    printed = "".join(output.get("text", "") for output in notebook.cells[-1].outputs)
    answer = json.loads(printed.partition("ANSWER")[2].splitlines()[0])
    assert sorted(answer) == [[2, "y = x @ x", 5, True], [3, "return y.relu()", 5, True]]
    assert len(list((tmp_path / "runs").glob("*.pt.trace.json.gz"))) == 1
