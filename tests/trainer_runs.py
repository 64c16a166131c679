"""What recordings of other trainers are asked: the steps, the lines, and what the whole run's time went to."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from deepscope.records import Line, Profile
from recorded import load
from warm_python import RECORDING, run_warm

__all__ = ["TESTS", "are_same", "is_complete", "line_of", "need", "run_recorded", "state_of", "steps_of", "times_of"]

TESTS = Path(__file__).resolve().parent
"""What counts as the user's project in these recordings."""


def need(module: str, package: str) -> None:
    """Skips a file of tests where its framework is not installed."""
    pytest.importorskip(module, reason=f"{package} is not installed: pip install {package}")


def steps_of(profile: Profile | None) -> list[int]:
    """The numbers of the steps recorded; the phases of each are all of its time."""
    assert profile is not None
    for step in profile.steps:
        assert sum(step.phases.values()) == step.duration_ns
    assert sum(phase.wall_ns for phase in profile.phases) == sum(step.duration_ns for step in profile.steps)
    return [step.number for step in profile.steps]


def is_complete(trace: Path) -> bool:
    """Whether nothing has ended the recording early."""
    complete: bool = load(trace)["deepscope"]["complete"]
    return complete


def line_of(profile: Profile | None, text: str) -> Line:
    """The one line with this text."""
    assert profile is not None
    [line] = [line for line in profile.lines if line.text.strip() == text]
    return line


def times_of(profile: Profile | None) -> dict[str, int]:
    """How often each part of the run came; the parts are all of its time."""
    assert profile is not None
    run = profile.whole_run
    assert run is not None
    assert sum(part.time_ns for part in run.parts) == run.duration_ns
    return {part.name: part.times for part in run.parts if part.times}


def state_of(model: nn.Module) -> list[torch.Tensor]:
    """All that training changes, and the next random number."""
    return [*(value.detach().clone() for value in model.state_dict().values()), torch.rand(4)]


def are_same(states: list[list[torch.Tensor]]) -> bool:
    """Whether two trainings came to the same, to the bit."""
    first, second = states
    return len(first) == len(second) and all(map(torch.equal, first, second))


def run_recorded(folder: Path, program: str) -> list[Path]:
    """The traces in `deepscope_logs` that `deepscope run` leaves of a program."""
    (folder / "pyproject.toml").touch()
    (folder / "train.py").write_text(program)
    done = run_warm(
        module="deepscope",
        imported=RECORDING,
        arguments=("run", "-q", "train.py"),
        folder=folder,
        timeout_s=120,
    )
    assert done.returncode == 0, done.stderr
    return sorted((folder / "deepscope_logs").glob("*.pt.trace.json.gz"))
