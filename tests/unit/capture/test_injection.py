"""The script that makes a running process one that can be recorded, run in a Python of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from deepscope.capture.on_demand import injection

JOIN = """
def join(folder):
    import only_here  # as what `deepscope` needs, which the process may not have
    only_here.joined.append(folder)
"""
PROGRAM = """
import sys, threading, types
sys.modules["torch"] = types.ModuleType("torch")
before = list(sys.path)
exec(open(sys.argv[1]).read())
for thread in threading.enumerate():
    if thread.name == "deepscope-joining":
        thread.join(30)
assert sys.path == before, sys.path
print(getattr(sys.modules.get("only_here"), "joined", None))
"""


@pytest.mark.parametrize("has_needs", [True, False])
def test_what_is_lent_is_there_until_the_process_has_joined(has_needs: bool, tmp_path: Path) -> None:
    site, answer, script = tmp_path / "site", tmp_path / "answer", tmp_path / "script.py"
    folder = site / "deepscope" / "capture" / "on_demand"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent, folder.parent.parent):
        (package / "__init__.py").touch()
    (folder / "injection.py").write_text(JOIN)
    if has_needs:
        (site / "only_here.py").write_text("joined = []\n")
    instructions = {
        "folder": "traces",
        "site": str(site),
        "is_source": False,
        "version": list(sys.version_info[:2]),
        "answer": str(answer),
    }
    script.write_text(injection._SCRIPT.replace("INSTRUCTIONS", repr(instructions)))
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    problem = json.loads(answer.read_text())["problem"]
    if has_needs:
        assert (done.stdout.strip(), problem) == ("['traces']", "")
    else:
        assert "No module named 'only_here'" in problem
