"""The documented calls of the skill lead to the guilty line, the cause and the remedy, in few tokens.

No model is asked: what an assistant reads is what the commands write.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from assistant_calls import CALLS, PROGRAMS, Answers, answers_for, call, next_step, steps_of_the_skill, tokens
from deepscope.records.findings import VERDICTS
from recorded_traces import OWN_TRACES, needs_shared_traces, shared_paths
from warm_python import run_command

BOUND = 3_000
"""Tokens that the first calls may take together."""

TRACES = {
    "device": ("DS005 device.py:69", "Take this work out of the loop"),
    "grafted-device": ("DS003 train.py:64", "Give it more than its 2 workers"),
    "lightning-with-workers": ("DS003 train.py:103", "workers"),
    "torch-with-stack": ("DS003 train.py:66", "num_workers"),
}
"""The finding that saves most in a trace, and words of its remedy."""


def read(words: list[str]) -> str:
    done = run_command(*words[1:], COLUMNS="120")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", TRACES)
def test_the_first_calls_on_a_trace_lead_to_the_line_the_cause_and_the_remedy(name: str) -> None:
    trace = OWN_TRACES / f"{name}.json.gz"
    first = read(["deepscope", "report", str(trace)])
    second = read(next_step(first))
    finding, remedy = TRACES[name]
    assert finding.replace(" ", "  ") in first
    assert remedy in " ".join(first.split())
    assert re.search(rf"^line +{re.escape(finding.split()[1])} ", second, re.MULTILINE)
    assert re.search("^next: ", second, re.MULTILINE)
    assert tokens(first + second) < BOUND


@needs_shared_traces
@pytest.mark.parametrize("path", shared_paths() or [Path("absent")], ids=lambda path: path.name[:40])
def test_the_first_calls_on_anyones_trace_are_short(path: Path) -> None:
    first = read(["deepscope", "report", str(path)])
    step = next_step(first)
    second = read(step) if step[:2] == ["deepscope", "report"] else ""
    assert tokens(first + second) < BOUND


BUSY, RECORDINGS = "the machine was busy", 4
"""Where a report says so nothing is to be concluded: the program is recorded again, as the skill teaches."""

MISTAKES = {
    "anomaly": ("DS022", "set_detect_anomaly(True)", "Take `torch.autograd.set_detect_anomaly(True)`"),
    "augmented": ("DS003", "avg_pool2d(picture[None]", "num_workers"),
    "boxes": ("DS007", "best.append(box_iou(box, truth))", "whole tensor at once"),
    "by_hand": ("DS010", "(q @ k.transpose(-2, -1) / 4)", "scaled_dot_product_attention"),
    "comprehension": ("DS013", "for number in range(128 * 256)", ""),
    "fresh_iterator": ("DS003", "next(iter(loader))", ""),
    "many_parameters": ("DS011", "optimizer.step()", "fused=True"),
    "percentile": ("DS013", "np.percentile(", ""),
    "printed": ("DS019", "log.info(", ""),
    "recomputed": ("DS008", "checkpoint(layer, x", ""),
}
"""The finding, the guilty line's text, and words of the remedy where they are always the same."""


@pytest.mark.thorough
@pytest.mark.parametrize("name", MISTAKES)
def test_the_first_calls_on_a_program_lead_to_its_mistake(name: str, tmp_path: Path) -> None:
    code, text, remedy = MISTAKES[name]
    program = PROGRAMS / f"{name}.py"
    number = next(n for n, line in enumerate(program.read_text().splitlines(), 1) if text in line)
    place = f"train.py:{number}"
    for attempt in range(RECORDINGS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        found = answers_for(program, folder)
        told = " ".join(found.calls[0].split())
        if f"{code} {place} " in told or BUSY not in told:
            break
    assert f"{code} {place} " in told
    assert remedy in told
    check_sizes(found)
    assert place not in found.key_averages


def check_sizes(found: Answers) -> None:
    """The calls are within the bound; the table without lines is longer, and the trace longer by far."""
    read = sum(map(tokens, found.calls))
    assert len(found.calls) <= CALLS
    assert read < BOUND
    assert tokens(found.trace) > 10 * read


@pytest.mark.thorough
def test_the_next_calls_prove_the_remedy_and_the_change(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text((PROGRAMS / "anomaly.py").read_text())
    for words in (
        ["init", "-q", "."],
        ["add", "."],
        ["-c", "user.email=a@b", "-c", "user.name=a", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    _, _, trial, proof = steps_of_the_skill()
    short = ["--steps", "5", "--budget", "90s"]
    place = trial.index("--")
    tried = call(["DS022" if word == "DS003" else word for word in [*trial[:place], *short, *trial[place:]]], tmp_path)
    assert "anomaly-off" in tried
    assert "next: " in tried
    program.write_text(program.read_text().replace("set_detect_anomaly(True)", "set_detect_anomaly(False)"))
    place = proof.index("--")
    proved = call([*proof[:place], *short, *proof[place:]], tmp_path)
    assert any(verdict in proved for verdict in VERDICTS)
    assert "next: " in proved
    assert "RESULTS DIFFER" not in proved
