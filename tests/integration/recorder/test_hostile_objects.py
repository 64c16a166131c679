"""Objects of the program's that answer to nothing, and a header that cannot be made: no window is lost for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import torch
from torch import nn

import deepscope
from deepscope.capture.saving import header, rewrite, saver
from recorded import TESTS, load, name_of, run_python

HOSTILE = """
    import torch
    from torch import nn
    class Unhashable(type):
        def __eq__(cls, other):
            raise TypeError("no comparison")
        __hash__ = None
    class Hostile(metaclass=Unhashable):
        @property
        def __class__(self):
            raise RuntimeError("outside of a context")
        def __getattr__(self, name):
            raise RuntimeError(name)
        def __repr__(self):
            raise RuntimeError("no text")
        def run(self):
            return model(torch.ones(2, 8)).sum()
    class Net(nn.Module, metaclass=Unhashable):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8)
        def forward(self, x):
            return self.layer(x)
    class Optimizer(torch.optim.SGD, metaclass=Unhashable):
        pass
    model = Net()
    optimizer = Optimizer(model.parameters(), lr=0.1)
    things = [Hostile() for _ in range(3)]
"""


@pytest.mark.parametrize("options", ["", ", profile_memory=True, libraries='hot'"], ids=["default", "memory"])
def test_classes_that_cannot_be_hashed_compared_or_asked_cost_nothing(tmp_path: Path, options: str) -> None:
    runs = tmp_path / "runs"
    training = f"""
        import deepscope
        with deepscope.profile({str(runs)!r}, root={str(tmp_path)!r}{options}):
            for _ in range(3):
                optimizer.zero_grad()
                things[0].run().backward()
                optimizer.step()
    """
    program = tmp_path / "program.py"
    program.write_text(dedent(HOSTILE) + dedent(training))
    done = run_python(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')", KINETO_LOG_LEVEL="9")
    assert (done.returncode, "Warning" in done.stderr) == (0, False), done.stderr
    (path,) = runs.iterdir()
    own = load(path)["deepscope"]
    assert (own.get("notes", []), own["lines"].get("warnings", [])) == ([], [])
    assert {"Net", name_of("Hostile.run")} <= {row[3] for row in own["scopes"]}
    assert [one["name"] for one in own["settings"]["optimizers"]] == ["Optimizer"]


def fail(*_: Any, **__: Any) -> Any:
    class WordlessError(Exception):
        def __str__(self) -> str:
            raise ValueError

    raise WordlessError


@pytest.mark.parametrize(
    ("place", "name", "without"),
    [
        (header, "settings", "what is set"),
        (header, "describe_files", "the text of your files"),
        (header, "code_of_window", "what torch.compile made"),
        (header.process, "versions", "versions"),
        (header.process, "describe_device", "the device"),
        (header.process, "program_name", "the program's name"),
        (saver, "git_state", "its commit"),
        (saver, "add_workers", "data-loader workers"),
        (rewrite, "compared_clock", "settings, memory, workers, audit and compiled code"),
    ],
)
def test_a_window_is_written_without_the_part_of_its_header_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, without: str
) -> None:
    original: Callable[..., Any] = getattr(place, name)
    calls: list[int] = []

    def first_fails(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return fail() if len(calls) == 1 else original(*args, **kwargs)

    monkeypatch.setattr(place, name, first_fails)
    net = nn.Linear(8, 8)
    with deepscope.profile(tmp_path, root=TESTS) as recording:
        net(torch.ones(2, 8)).sum().backward()
    own = load(recording.traces[0])["deepscope"]
    assert calls
    assert own["notes"] == [f"this trace is without {without}: WordlessError"]
    assert [one.suffix for one in tmp_path.iterdir()] == [".gz"]
    assert without in " ".join(recording.profile.trace.warnings)
    assert name_of("test_a_window_is_written_without_the_part_of_its_header_that_cannot_be_made") in {
        line.function for line in recording.profile.lines
    }
