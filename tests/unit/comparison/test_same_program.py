"""Which runs stand beside each other unasked: one program before and after a change, and no two strangers'."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from deepscope.analysis.build import build_profile
from deepscope.comparison.pairing import is_same_code, is_same_program, shared_lines
from deepscope.records import Profile
from deepscope.trace.read import read_trace
from simulated_runs import simulated
from trace_builder import TraceBuilder

LINES = [f"value_{number} = layer_{number}(batch)" for number in range(1, 11)]
TEXT = "\n".join(LINES) + "\n"
EDITED = TEXT.replace("layer_3(batch)", "layer_3(batch.half())")
STRANGER = "".join(f"with profiled_{number}() as result_{number}:\n    pass\n" for number in range(1, 11))
HEADER = {"program": "profile_model.py", "arguments": "0e5751c0", "recorded_at": "2026-01-02T03:04:05+00:00",
          "versions": {"python": "3.13.0", "torch": "2.13.0"}}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path):
    """A run of a text, with what its header states otherwise; `source` is what it holds of the text."""

    def make(text: str = TEXT, *, root: str = "/job", source: str = "text", **stated: Any) -> Profile:
        file = f"{root}/train.py"
        times = {line: [1_000, 1_100] for line in range(1, 11)}
        builder = simulated(times, file=file, root=root, **{**HEADER, **stated})
        for one in builder.files:
            if source != "none":
                one["sha256"] = hashlib.sha256(text.encode()).hexdigest()
            if source == "text":
                one["text"] = text
        return build_profile(read_trace(builder.write(tmp_path / "run.json")))

    return make


@pytest.mark.parametrize("text", [TEXT, EDITED, "import torch\n\n" + TEXT, "\n".join(reversed(LINES))])
def test_a_program_before_and_after_an_edit_is_one_program(run, text: str) -> None:
    assert is_same_program(run(), run(text))


@pytest.mark.parametrize(
    "other",
    [
        {"root": "/home/somebody/else"},
        {"arguments": "f00dcafe"},
        {"program": "evaluate.py"},
        {"stage": "validate"},
        {"device": {"type": "cuda", "name": "NVIDIA H100 80GB HBM3", "count": 8}},
        {"text": STRANGER},
        {"text": "\n".join(LINES[:5]) + STRANGER},
    ],
    ids=["project", "arguments", "program", "stage", "device", "code", "half the code"],
)
def test_what_differs_by_more_than_an_edit_is_another_program(run, other: dict[str, Any]) -> None:
    assert not is_same_program(run(), run(**other))
    assert not is_same_program(run(**other), run())


@pytest.mark.parametrize("unknown", ["program", "arguments", "project_root"])
def test_what_neither_run_states_is_not_taken_for_equal(run, unknown: str) -> None:
    assert not is_same_program(run(**{unknown: ""}), run(**{unknown: ""}))


def test_traces_of_other_recorders_are_of_no_known_program(tmp_path: Path) -> None:
    def recorded() -> Profile:
        frames = TraceBuilder().frame("profile_model.py(12): main", 0, 900).op("aten::mm", 10, 400)
        return build_profile(read_trace(frames.kernel("gemm", 20, 40, 200).write(tmp_path / "run.json")))

    assert recorded().lines
    assert not is_same_program(recorded(), recorded())


def test_equal_files_are_the_same_code_and_an_edit_is_not(run) -> None:
    assert is_same_code(run(), run()) is True
    assert is_same_code(run(), run(EDITED)) is False
    assert is_same_code(run(), run(versions={"python": "3.13.0", "torch": "2.14.0"})) is False


def test_without_texts_hashes_decide_and_without_both_nothing_is_known(run) -> None:
    assert is_same_program(run(source="hash"), run(source="hash"))
    assert is_same_code(run(source="hash"), run()) is True
    assert not is_same_program(run(source="hash"), run(EDITED, source="hash"))
    assert is_same_code(run(source="none"), run(source="none")) is None
    assert not is_same_program(run(source="none"), run(source="none"))


def test_the_share_is_of_the_larger_text(run) -> None:
    assert shared_lines(run(), run(EDITED)) == pytest.approx(0.9)
    assert shared_lines(run(), run(TEXT + STRANGER.replace("    pass\n", ""))) == pytest.approx(0.5)
