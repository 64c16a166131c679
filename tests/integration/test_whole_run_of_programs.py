"""`deepscope run` on real programs: what the time of the whole run went to, recorded or not."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
import torch

from deepscope import load_profile
from deepscope.cli.next_step import after_report
from deepscope.records import Profile, WholeRun
from deepscope.report.run_verdict import run_verdict
from warm_python import RECORDING, run_warm

BEGIN = """\
import time
import torch
from torch.utils.data import DataLoader, Dataset

class Items(Dataset):
    def __init__(self, count, item_s=0.0):
        self.count, self.item_s = count, item_s
    def __len__(self):
        return self.count
    def __getitem__(self, number):
        time.sleep(self.item_s)
        return torch.randn(8)

before = DataLoader.__iter__, torch.save
net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

def step(batch, step_s=0.001):
    net(batch).sum().backward()
    time.sleep(step_s)
    optimizer.step()
    optimizer.zero_grad()
"""


def run(folder: Path, program: str, *options: str, code: int = 0) -> subprocess.CompletedProcess:
    (folder / "pyproject.toml").touch()
    (folder / "train.py").write_text(BEGIN + program)
    done = run_warm(
        module="deepscope",
        imported=RECORDING,
        arguments=("run", "-q", *options, "train.py"),
        folder=folder,
        timeout_s=300,
    )
    assert done.returncode == code, done.stderr
    return done


def traces_of(folder: Path, *, of_evaluation: bool = False) -> list[Path]:
    found = (folder / "deepscope_logs").glob("*.pt.trace.json.gz")
    return [one for one in found if (".validate." in one.name) is of_evaluation]


def profile_of(folder: Path) -> Profile:
    (trace,) = traces_of(folder)
    return load_profile(trace, cache=False)


def run_of(folder: Path) -> WholeRun:
    run = profile_of(folder).whole_run
    assert run is not None
    assert sum(part.time_ns for part in run.parts) == run.duration_ns
    return run


def seconds(run: WholeRun, part: str) -> float:
    return run.time_ns(part) / 1e9


def times(run: WholeRun) -> dict[str, int]:
    return {part.name: part.times for part in run.parts if part.times}


VALIDATION = """\
for epoch in range(3):
    net.train()
    for batch in DataLoader(Items(12), batch_size=4):
        step(batch)
    net.eval()
    {around}
        for batch in DataLoader(Items(12), batch_size=4):
            {within}
                net(batch)
                time.sleep(0.4)
    torch.save(net.state_dict(), "checkpoint.pt")
    time.sleep(0.05)
"""


@pytest.mark.parametrize("place", ["around", "within"])
def test_validation_that_takes_most_of_the_time_is_what_the_verdict_says(tmp_path, place):
    blocks = {"around": "if True:", "within": "if True:"} | {place: "with torch.no_grad():"}
    run(tmp_path, VALIDATION.format(**blocks))
    profile = profile_of(tmp_path)
    whole = run_of(tmp_path)
    assert times(whole) == {"steps": 9, "data": 9, "evaluation": 3, "checkpoint": 3}
    assert seconds(whole, "evaluation") >= 3 * 3 * 0.4
    assert seconds(whole, "rest") >= 3 * 0.05
    assert [(one.number, one.steps) for one in whole.epochs] == [(0, 3), (1, 3), (2, 3)]
    said = run_verdict(profile)
    assert said.cause == "evaluation"
    assert said.sentence.startswith("Validation takes ")


LONG_VALIDATION = """\
def evaluate():
    net.eval()
    with torch.no_grad():
        for batch in DataLoader(Items({rows}), batch_size=4):
            time.sleep(0.03)
            net(batch)
    net.train()

for epoch in range({epochs}):
    for batch in DataLoader(Items(24), batch_size=4):
        step(batch)
    evaluate()
"""


def test_an_evaluation_that_takes_long_has_a_window_of_its_own(tmp_path):
    done = run(tmp_path, LONG_VALIDATION.format(rows=48, epochs=2))
    (trace,) = traces_of(tmp_path, of_evaluation=True)
    assert str(trace) in done.stderr
    profile = load_profile(trace, cache=False)
    assert (profile.trace.stage, profile.totals.steps) == ("validate", 3)
    (line,) = [one for one in profile.lines if one.text.strip() == "time.sleep(0.03)"]
    assert line.calls == 3
    assert line.blocked_ns > 3 * 25_000_000
    main = load_profile(tmp_path / "deepscope_logs", cache=False)
    assert main.trace.stage == ""
    assert after_report(main, "line") == f"deepscope report {trace.parent} --stage validate"
    assert "--stage" not in after_report(profile, "line")
    assert main.whole_run is not None
    assert times(main.whole_run) == {"steps": 12, "data": 12, "evaluation": 2}
    assert load_profile(tmp_path / "deepscope_logs", stage="validate", cache=False).trace.path == str(trace)


@pytest.mark.parametrize("rows", [4, 8])
def test_a_short_evaluation_is_recorded_as_far_as_it_goes(tmp_path, rows):
    run(tmp_path, LONG_VALIDATION.format(rows=rows, epochs=8).replace("0.03", "0.2"))
    (trace,) = traces_of(tmp_path, of_evaluation=True)
    assert load_profile(trace, cache=False).totals.steps == rows // 4


def test_a_loader_without_a_length_may_have_no_batch_left(tmp_path):
    program = LONG_VALIDATION.format(rows=4, epochs=3).replace("0.03", "0.3")
    stream = "class Stream(torch.utils.data.IterableDataset):\n    def __iter__(self):\n        yield torch.randn(8)\n"
    run(tmp_path, stream + program.replace("DataLoader(Items(4), batch_size=4)", "DataLoader(Stream(), batch_size=4)"))
    (trace,) = traces_of(tmp_path, of_evaluation=True)
    assert load_profile(trace, cache=False).totals.steps == 1


def test_an_evaluation_that_is_left_early_ends_its_window(tmp_path):
    run(tmp_path, LONG_VALIDATION.format(rows=48, epochs=3).replace("net(batch)", "break", 1))
    assert len(traces_of(tmp_path)) == 1
    assert len(traces_of(tmp_path, of_evaluation=True)) <= 1


REPEATED_IN_VALIDATION = """\
wide, narrow = torch.nn.Linear(8, 20_000), torch.nn.Linear(20_000, 100)

def encode(batch):
    return narrow(torch.relu(wide(batch)))

def evaluate():
    wide.eval(), narrow.eval(), net.eval()
    hits = 0.0
    for batch in DataLoader(Items({rows}), batch_size=4):
        for token in range(8):
            hits += net(batch + token).mean().item() * encode(batch).mean().item()
    net.train()
    return hits

for epoch in range({epochs}):
    for batch in DataLoader(Items(24), batch_size=4):
        step(batch)
    evaluate()
"""


@pytest.mark.parametrize(("rows", "epochs"), [(48, 2), (20, 6)])
def test_an_evaluation_is_looked_at_and_what_it_repeats_is_found(tmp_path, rows, epochs):
    """The steps that are looked at may be those of a later evaluation than the timed ones."""
    run(tmp_path, REPEATED_IN_VALIDATION.format(rows=rows, epochs=epochs), "--audit")
    (trace,) = traces_of(tmp_path, of_evaluation=True)
    profile = load_profile(trace, cache=False)
    assert profile.audit is not None
    assert profile.audit.left_out == ""
    assert profile.audit.steps == 2
    found = {one.code: one for one in reversed(profile.findings)}  # the first of each rule
    assert found.keys() >= {"DS035", "DS038"}
    assert found["DS035"].message.startswith("a step computes here what it has computed before")
    assert 0.1 < found["DS035"].saving_ns / profile.totals.wall_ns < 0.875  # seven of eight
    (line,) = [one for one in profile.lines if one.line == found["DS035"].line and one.file == found["DS035"].file]
    assert "narrow(torch.relu(wide(batch)))" in line.text
    assert "no_grad" in found["DS038"].remedy.text
    assert load_profile(tmp_path / "deepscope_logs", cache=False).audit.steps == 2


def test_short_evaluations_have_none(tmp_path):
    run(
        tmp_path,
        LONG_VALIDATION.format(rows=8, epochs=2).replace("0.03", "0.0").replace("step(batch)", "step(batch, 0.03)"),
    )
    assert traces_of(tmp_path, of_evaluation=True) == []


def test_the_wait_for_data_and_checkpoints_are_told_apart(tmp_path):
    program = """\
class Slow:
    def __reduce__(self):
        time.sleep(0.2)
        return Slow, ()

for epoch in range(2):
    for number, batch in enumerate(DataLoader(Items(16, item_s=0.01), batch_size=4)):
        step(batch)
        if number == 1:
            torch.save(Slow(), "checkpoint.pt")
"""
    run(tmp_path, program)
    whole = run_of(tmp_path)
    assert times(whole) == {"steps": 8, "data": 8, "checkpoint": 2}
    assert seconds(whole, "data") >= 2 * 16 * 0.01
    assert seconds(whole, "checkpoint") >= 2 * 0.2
    assert seconds(whole, "steps") >= 8 * 0.001
    assert whole.first_step_ns >= 4 * 0.01e9
    assert "evaluation" not in {part.name for part in whole.parts}


def test_a_run_long_after_its_window_is_accounted_for_to_its_end(tmp_path):
    program = """\
for epoch in range(40):
    for batch in DataLoader(Items(50), batch_size=1):
        step(batch, 0)
time.sleep(0.3)
"""
    run(tmp_path, program)
    whole = run_of(tmp_path)
    assert times(whole) == {"steps": 2000, "data": 2000}
    assert {one.steps for one in whole.epochs} == {50}
    assert seconds(whole, "rest") >= 0.3


def test_epochs_that_get_slower_are_named(tmp_path):
    program = """\
kept = []
for epoch in range(8):
    for batch in DataLoader(Items(6), batch_size=2):
        step(batch, 0.02 * (1 + epoch))
"""
    run(tmp_path, program)
    assert [one.steps for one in run_of(tmp_path).epochs] == [3] * 8
    assert "Steps get slower: " in run_verdict(profile_of(tmp_path)).sentence


def test_gradients_of_several_batches_are_one_step(tmp_path):
    program = """\
for epoch in range(3):
    for number, batch in enumerate(DataLoader(Items(14), batch_size=2)):
        net(batch).sum().backward()
        time.sleep(0.01)
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
"""
    run(tmp_path, program)
    whole = run_of(tmp_path)
    assert times(whole) == {"steps": 9, "data": 9}
    assert seconds(whole, "steps") >= 3 * 7 * 0.01
    assert [one.steps for one in whole.epochs] == [3, 3, 3]


def test_the_second_optimizer_of_a_gan_works_within_the_step(tmp_path):
    program = """\
critic = torch.nn.Linear(8, 1)
second = torch.optim.SGD(critic.parameters(), lr=0.01)
for epoch in range(2):
    for real, other in zip(DataLoader(Items(10), batch_size=2), DataLoader(Items(10), batch_size=2)):
        step(real)
        critic(other).sum().backward()
        time.sleep(0.05)
        second.step()
        second.zero_grad()
"""
    run(tmp_path, program)
    whole = run_of(tmp_path)
    assert times(whole) == {"steps": 10, "data": 10}
    assert seconds(whole, "steps") >= 9 * 0.05
    assert [one.steps for one in whole.epochs] == [5, 5]


def test_without_a_loader_the_wait_for_data_is_unknown(tmp_path):
    program = """\
data = torch.randn(32, 8)
for epoch in range(2):
    for place in range(0, 32, 4):
        step(data[place : place + 4], 0.01)
"""
    run(tmp_path, program)
    whole = run_of(tmp_path)
    assert {part.name for part in whole.parts} == {"steps", "recording", "start", "rest"}
    assert times(whole) == {"steps": 15}  # of the first one nobody knows when it began
    assert seconds(whole, "steps") >= 15 * 0.01
    assert whole.first_step_ns == 0


def test_a_loop_that_is_left_is_over_there(tmp_path):
    program = """\
for number, batch in enumerate(DataLoader(Items(400), batch_size=2)):
    step(batch)
    if number == 9:
        break
time.sleep(0.5)
"""
    run(tmp_path, program)
    whole = run_of(tmp_path)
    assert times(whole) == {"steps": 10, "data": 10}
    assert seconds(whole, "rest") >= 0.5


@pytest.mark.parametrize(("end", "code"), [("raise ValueError('boom')", 1), ("sys.exit(3)", 3)])
def test_a_program_that_is_cut_short_is_accounted_for(tmp_path, end, code):
    program = """\
import sys
for number, batch in enumerate(DataLoader(Items(40), batch_size=2)):
    step(batch)
    if number == 12:
        END
"""
    run(tmp_path, program.replace("END", end), code=code)
    assert times(run_of(tmp_path)) == {"steps": 13, "data": 13}


def test_ctrl_c_leaves_the_account(tmp_path):
    program = """\
import os, signal
for number, batch in enumerate(DataLoader(Items(40), batch_size=2)):
    step(batch)
    if number == 12:
        os.kill(os.getpid(), signal.SIGINT)
"""
    run(tmp_path, program, code=130)
    assert times(run_of(tmp_path)) == {"steps": 13, "data": 13}


def test_sigterm_in_a_window_leaves_the_account(tmp_path):
    program = """\
import os, signal
for number, batch in enumerate(DataLoader(Items(40), batch_size=2)):
    step(batch)
    if number == 3:
        os.kill(os.getpid(), signal.SIGTERM)
"""
    run(tmp_path, program, code=-signal.SIGTERM)
    assert times(run_of(tmp_path)) == {"steps": 4, "data": 4}


def test_the_start_has_what_the_program_does_before_its_first_step(tmp_path):
    program = """\
time.sleep(0.4)
everything = [batch for batch in DataLoader(Items(8, item_s=0.01), batch_size=4)]
for _ in range(2):
    for batch in DataLoader(Items(8), batch_size=2, num_workers=1):
        step(batch)
"""
    run(tmp_path, program)
    whole = run_of(tmp_path)
    assert seconds(whole, "start") >= 0.4 + 8 * 0.01
    assert times(whole) == {"steps": 8, "data": 8}


def test_a_program_that_records_itself_is_watched_by_its_own_recording_alone(tmp_path):
    program = """\
import deepscope
with deepscope.profile("own", wait=1, warmup=0, active=2) as prof:
    for _ in range(2):
        for batch in DataLoader(Items(8), batch_size=2):
            step(batch)
            prof.step()
        with torch.no_grad():
            for batch in DataLoader(Items(8), batch_size=2):
                time.sleep(0.01)
"""
    run(tmp_path, program)
    assert not (tmp_path / "deepscope_logs").exists()
    (trace,) = (tmp_path / "own").glob("*.pt.trace.json.gz")
    whole = load_profile(trace, cache=False).whole_run
    assert whole is not None
    assert times(whole) == {"steps": 8, "data": 8, "evaluation": 2}
    assert seconds(whole, "evaluation") >= 8 * 0.01


CALLBACK = """\
import deepscope
told = deepscope.callback("own")
for _ in range(3):
    for batch in DataLoader(Items(8), batch_size=2):
        step(batch)
        told()
CLOSE
"""


@pytest.mark.parametrize("close", ["told.close()", "", "raise SystemExit(0)"])
def test_a_callback_accounts_for_the_run_whether_it_is_closed_or_not(tmp_path, close):
    (tmp_path / "pyproject.toml").touch()
    program = tmp_path / "train.py"
    program.write_text(BEGIN + CALLBACK.replace("CLOSE", close))
    done = run_warm(script=program, imported=RECORDING, arguments=(), folder=tmp_path, timeout_s=300)
    assert done.returncode == 0, done.stderr
    (trace,) = (tmp_path / "own").glob("*.pt.trace.json.gz")
    whole = load_profile(trace, cache=False).whole_run
    assert whole is not None
    assert times(whole) == {"steps": 12, "data": 12}
    assert [one.steps for one in whole.epochs] == [4, 4, 4]


COMPILED = """\
import io, sys
import torch
from torch.utils.data import DataLoader
from deepscope.capture.whole_run.run_watch import RunWatch

graphs, content, loader = [], io.BytesIO(), DataLoader(torch.ones(3, 2), batch_size=None)

def keep(graph, _):
    graphs.append(graph)
    return graph.forward

def save(value):
    value = value + 1
    torch.save(1, content)
    return value * 2

def fetch(value):
    value = value + next(batches)
    return value * 2

def go_through(value):
    for batch in loader:
        value = value + batch
    return value * 2

for function in (save, fetch, go_through):
    for watch in (None, RunWatch().listen()):
        torch._dynamo.reset()
        graphs.clear()
        batches = iter(loader)
        result = torch.compile(function, backend=keep)(torch.ones(2)).tolist()
        print(function.__name__, result, len(graphs))
        if watch is not None:
            watch.close()
"""


@pytest.mark.skipif(not torch._dynamo.is_dynamo_supported(), reason="this torch cannot compile on this Python")
def test_compiled_code_has_the_same_graphs_as_unwatched(tmp_path):
    script = tmp_path / "compiled.py"
    script.write_text(COMPILED)
    done = run_warm(script=script, folder=tmp_path, timeout_s=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[::2] == lines[1::2]
    assert len(lines) == 6
    assert lines[0] == "save [4.0, 4.0] 2"


def test_one_model_after_the_other_is_trained_with_an_optimizer_of_its_own(tmp_path):
    program = """\
for fold in range(4):
    net = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for batch in DataLoader(Items(8), batch_size=2):
        step(batch, 0.01)
"""
    run(tmp_path, program)
    whole = run_of(tmp_path)
    assert times(whole) == {"steps": 16, "data": 16}
    assert seconds(whole, "steps") >= 16 * 0.01
