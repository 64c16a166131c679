"""What stands without torch, and what `import deepscope` may cost."""

import subprocess
import sys

import pytest

BLOCK_TORCH = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "lightning", "pytorch_lightning", "tensorboard"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_import_deepscope_loads_neither_torch_nor_numpy() -> None:
    done = run(
        "import sys, deepscope; print(sorted({'torch', 'numpy', 'wcwidth', 'click', 'fsspec'} & set(sys.modules)))"
    )
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize(
    "module",
    [
        "deepscope",
        "deepscope.cli",
        "deepscope.report",
        "deepscope.store",
        "deepscope.analysis",
        "deepscope.trace.read",
        "deepscope.capture.saving.writer",
        "deepscope.capture.saving.rewrite",
    ],
)
def test_reading_reporting_and_rewriting_import_where_torch_is_absent(module: str) -> None:
    done = run(f"{BLOCK_TORCH}\nimport {module}")
    assert done.returncode == 0, done.stderr


def test_the_command_line_answers_where_torch_is_absent() -> None:
    done = run(f"{BLOCK_TORCH}\nsys.argv = ['deepscope', '--help']\nfrom deepscope.cli import main\nmain()")
    assert done.returncode == 0, done.stderr
    assert "report" in done.stdout


def test_recording_without_torch_names_the_pip_command() -> None:
    done = run(f"{BLOCK_TORCH}\nimport deepscope\ndeepscope.profile('x')")
    assert done.returncode != 0
    assert "pip install 'deepscope[torch]'" in done.stderr.strip().splitlines()[-1]


def test_what_trainers_share_imports_none_of_their_frameworks() -> None:
    names = "{'transformers', 'accelerate', 'lightning', 'ignite'}"
    done = run(
        f"import sys, deepscope.trainers.training_run, deepscope.trainers.fabric\nprint({names} & set(sys.modules))"
    )
    assert done.stdout.strip() == "set()", done.stderr
