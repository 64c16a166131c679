"""Steps that are looked at: nothing of what they compute changes, and nothing of the audit is left behind."""

from __future__ import annotations

import _thread
import gc
import random
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

import deepscope
from audited_programs import PROGRAMS, looked_at, looked_at_all, text_at
from deepscope.capture.audit.step_audit import STEPS, Audited, StepAudit
from deepscope.capture.audit.watch import Watch
from deepscope.capture.lines import UserCode
from deepscope.trace.format.audit import UnusedGradients
from recorded import TESTS
from warm_python import run_warm

pytestmark = pytest.mark.usefixtures("nothing_compiled")

AROUND = 2
"""Steps before those that are looked at, and behind them."""


@pytest.fixture(autouse=True)
def no_mode_is_left() -> Iterator[None]:
    yield
    assert not _get_current_dispatch_mode_stack()


def state_of(make: Callable[..., object], *, with_audit: bool) -> list[torch.Tensor]:
    torch.manual_seed(7)
    random.seed(7)
    program = make()
    if with_audit:
        found = looked_at(program.step, warm_up=AROUND)
        assert found.account.left_out == ""
        assert found.account.steps == STEPS
    else:
        for _ in range(AROUND + STEPS):
            program.step()
    for _ in range(AROUND):
        program.step()
    tensors = [one for module in program.modules for one in module.state_dict().values()]
    return [*tensors, torch.get_rng_state(), torch.tensor([random.random()])]


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_and_random_numbers_are_the_same_to_the_bit(name: str):
    plain = state_of(PROGRAMS[name], with_audit=False)
    audited = state_of(PROGRAMS[name], with_audit=True)
    assert len(plain) == len(audited)
    assert all(torch.equal(one, other) for one, other in zip(plain, audited, strict=True))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_without_a_mistake_has_none_of_what_is_looked_for(name: str):
    account = looked_at_all(PROGRAMS[name]().step).account
    assert bool(account.gradients) == (name == "adversarial")  # the generator's pass gives the critic gradients, too
    looked_for = account.graphs, account.kept, account.broadcasts, account.padding, account.copies
    assert looked_for == ([], [], [], [], [])
    assert [one for one in account.results if one.result_bytes > 4096] == []


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(16, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU())
        self.head = nn.Linear(512, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = self.backbone(x)
        return self.head(features)


def fine_tuning(*, is_frozen: bool, clips: bool = False) -> Callable[[], None]:
    model = Classifier()
    model.backbone.requires_grad_(not is_frozen)
    optimizer = torch.optim.Adam(model.head.parameters())

    def step() -> None:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(torch.randn(128, 16)), torch.randint(4, (128,)))
        loss.backward()
        if clips:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def of_line(found: Audited, text: str) -> list[UnusedGradients]:
    """The gradients whose place is a line of this file with this text."""
    return [one for one in found.account.gradients if text_at(found, one.place) == text]


@pytest.mark.parametrize("clips", [False, True])
def test_a_backbone_without_an_optimizer_is_found_at_its_call(clips: bool):
    found = looked_at(fine_tuning(is_frozen=False, clips=clips))
    (one,) = of_line(found, "features = self.backbone(x)")
    assert (one.fate, one.parameters, one.modules, one.whole) == ("no_optimizer", 4, ["backbone"], True)
    assert one.clipped == clips
    backward = found.places[one.backward]
    assert backward.function.endswith("step")
    forward = {found.places[use.place].line for use in one.operators if use.unused}
    assert len(forward) == 2  # of the head's gradient of its input, too
    assert looked_at(fine_tuning(is_frozen=True, clips=clips)).account.gradients == []


def test_a_teacher_is_named_as_a_whole_beside_a_student_of_its_class():
    teacher, student = Classifier(), Classifier()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)

    def step() -> None:
        x = torch.randn(128, 16)
        optimizer.zero_grad()
        goal = teacher(x)
        F.mse_loss(student(x), goal).backward()
        optimizer.step()

    (one,) = of_line(looked_at(step), "goal = teacher(x)")
    assert (one.fate, one.modules, one.whole) == ("no_optimizer", ["Classifier"], True)


def adversarial(*, is_detached: bool, is_frozen: bool) -> Callable[[], None]:
    generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))
    critic = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(), nn.Linear(32, 1))
    of_generator, of_critic = (torch.optim.Adam(one.parameters()) for one in (generator, critic))

    def step() -> None:
        of_critic.zero_grad()
        fake = generator(torch.randn(16, 8))
        shown = fake.detach() if is_detached else fake
        (critic(shown).mean() - critic(torch.randn(16, 16)).mean()).backward()
        of_critic.step()
        critic.requires_grad_(not is_frozen)
        of_generator.zero_grad()
        critic(generator(torch.randn(16, 8))).mean().neg().backward()
        of_generator.step()
        critic.requires_grad_(True)

    return step


def test_a_generator_that_the_critics_loss_differentiates_is_found_at_its_call():
    found = looked_at(adversarial(is_detached=False, is_frozen=True))
    assert len(found.account.gradients) == 1
    (one,) = of_line(found, "fake = generator(torch.randn(16, 8))")
    assert (one.fate, one.parameters, one.whole) == ("cleared", 4, True)
    assert looked_at(adversarial(is_detached=True, is_frozen=True)).account.gradients == []


def test_a_graph_that_another_loss_needs_is_told_and_batch_norm_hides_nothing_of_a_backward_pass():
    generator = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.Linear(32, 16))
    critic = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(), nn.Linear(32, 1))
    of_generator, of_critic = (torch.optim.Adam(one.parameters()) for one in (generator, critic))

    def step() -> None:
        of_critic.zero_grad()
        fake = generator(torch.randn(16, 8))  # both losses go through it
        critic(fake).mean().backward(retain_graph=True)
        of_critic.step()
        of_generator.zero_grad()
        fake.square().mean().backward()
        of_generator.step()

    (one,) = of_line(looked_at(step), "fake = generator(torch.randn(16, 8))  # both losses go through it")
    assert (one.fate, one.parameters, one.whole, one.shared) == ("cleared", 6, True, True)
    # The other loss's pass goes through the same line, and its half of the time there is not saved.
    place = one.place
    (norm,) = [use for use in one.operators if use.place == place and use.name == "aten::native_batch_norm_backward"]
    assert (norm.times, norm.unused) == (2, 1)


def test_what_one_optimizer_clears_and_none_has_is_not_to_be_frozen():
    actor, critic, target = (nn.Linear(8, 8) for _ in range(3))
    of_actor, of_critic = (torch.optim.Adam(one.parameters()) for one in (actor, critic))

    def step() -> None:
        goal = target(actor(torch.randn(4, 8)))
        of_critic.zero_grad()
        (critic(torch.randn(4, 8)) - goal).square().mean().backward()
        of_critic.step()
        of_actor.zero_grad()
        actor(torch.randn(4, 8)).mean().backward()
        of_actor.step()

    (one,) = looked_at(step).account.gradients
    assert (one.fate, one.parameters, one.whole, one.shared) == ("cleared", 4, True, False)


def test_a_critics_weights_that_the_generators_loss_differentiates_are_found_apart():
    found = looked_at(adversarial(is_detached=True, is_frozen=False))
    (one,) = found.account.gradients
    # The gradient of its input is needed: it goes on to the generator.
    assert (one.fate, one.parameters, one.whole) == ("cleared", 4, False)


def test_gradients_that_somebody_reads_are_used():
    model = Classifier()
    optimizer = torch.optim.Adam(model.head.parameters())
    norms = []

    def step() -> None:
        optimizer.zero_grad()
        model(torch.randn(8, 16)).square().mean().backward()
        norms.append(sum(float(one.grad.norm()) for one in model.backbone.parameters()))
        optimizer.step()

    assert looked_at(step).account.gradients == []


def test_an_operator_from_outside_torch_counts_as_a_use():
    library = torch.library.Library("audited", "FRAGMENT")
    library.define("note(Tensor x) -> ()")
    library.impl("note", lambda x: None, "CPU")
    model = Classifier()
    optimizer = torch.optim.Adam(model.head.parameters())

    def step() -> None:
        optimizer.zero_grad()
        model(torch.randn(8, 16)).square().mean().backward()
        for parameter in model.backbone.parameters():
            torch.ops.audited.note(parameter.grad)
        optimizer.step()

    account = looked_at(step).account
    assert account.gradients == []
    assert account.hidden == ["audited::note"]


def test_no_tensor_outlives_its_step():
    alive: list[weakref.ref[torch.Tensor]] = []
    counts = []
    step_of_program = PROGRAMS["transformer"]().step

    def step() -> None:
        counts.append(sum(one() is not None for one in alive))
        tensor = torch.randn(1000)
        alive.append(weakref.ref(tensor))
        step_of_program()

    gc.disable()
    try:
        looked_at(step, warm_up=AROUND)
    finally:
        gc.enable()
    assert counts == [0] * (AROUND + STEPS)


COMPILED = """\
import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
from deepscope.capture.audit.step_audit import StepAudit
from deepscope.capture.lines import UserCode

model = torch.compile(torch.nn.Linear(4, 4), backend="eager")
if CALLED:
    model(torch.ones(1, 4))
audit = StepAudit(UserCode("."))
audit.begin()
assert not _get_current_dispatch_mode_stack()
model(torch.ones(1, 4))
audit.step()
print(audit.audited().account.left_out)
model(torch.ones(1, 4))
print(torch._dynamo.utils.counters["stats"]["unique_graphs"])
"""


@pytest.mark.parametrize("called", [False, True])
def test_where_something_is_compiled_nothing_is_looked_at_and_it_is_compiled_as_often(called: bool, tmp_path: Path):
    program = COMPILED.replace("CALLED", str(called))
    done = run_warm(program, folder=tmp_path)
    reason, graphs = done.stdout.splitlines()
    assert "torch.compile" in reason
    assert graphs == "1"


class Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))


def test_beside_another_mode_nothing_is_looked_at():
    with Counting():
        assert "another dispatch mode" in looked_at(lambda: None).account.left_out


def test_a_mode_that_is_entered_meanwhile_stays():
    audit = StepAudit(UserCode(TESTS))
    audit.begin()
    mode = Counting()
    with mode:
        audit.stop()
        before = mode.calls
        torch.ones(2).add(1)
        assert mode.calls > before
    assert not _get_current_dispatch_mode_stack()


@pytest.mark.timeout(60)
def test_the_thread_whose_steps_are_looked_at_does_not_wait_for_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("deepscope.capture.audit.step_audit.LONGEST_S", 1e9)
    audit = StepAudit(UserCode(TESTS))
    audit.begin()
    assert audit.audited().account.left_out  # at once: where no thread can be started it writes the trace


@pytest.mark.timeout(60)
def test_operators_of_a_thread_that_python_did_not_start_are_looked_at():
    """Autograd computes for a device on such threads: the operator is their outermost Python."""
    watch, x = Watch(UserCode(TESTS)), torch.ones(2)
    _thread.start_new_thread(partial(watch.note, torch.ops.aten.add.Tensor, (x, x), {}, x + x), ())
    while not watch.flow.operations:
        time.sleep(0.01)
    assert len(watch.flow.operations) == 1


@pytest.mark.parametrize("place", ["flow.schema_of", "copies.Copies.note", "unused_results.JoinedParts.note_backward"])
def test_a_failure_of_the_audit_costs_what_it_would_have_found(place: str, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise ValueError("no schema")

    monkeypatch.setattr(f"deepscope.capture.audit.{place}", fail)
    assert "no schema" in looked_at(PROGRAMS["perceptron"]().step).account.left_out


def test_an_optimizer_without_parameters_hinders_nothing():
    unmade = torch.optim.SGD.__new__(torch.optim.SGD)  # as a wrapper that does not call what it inherits
    assert looked_at(PROGRAMS["perceptron"]().step).account.left_out == ""
    del unmade


def test_a_recording_looks_behind_its_window_and_its_trace_tells(tmp_path):
    step = fine_tuning(is_frozen=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with deepscope.profile(tmp_path, root=TESTS, wait=1, warmup=1, active=2, audit=True) as recording:
            for _ in range(8):
                step()
                recording.step()
    assert recording.profile is not None
    assert recording.profile.audit is not None
    assert recording.profile.audit.steps == STEPS
    assert recording.profile.totals.steps == 2
    (found,) = [one for one in recording.profile.findings if one.code == "DS033"]
    text = recording.profile.files[found.file].text.splitlines()[found.line - 1].strip()
    assert text == "features = self.backbone(x)"
    assert found.saving_ns > 0


def test_a_run_that_ends_too_early_says_so_and_keeps_its_trace(tmp_path):
    step = fine_tuning(is_frozen=False)
    with deepscope.profile(tmp_path, root=TESTS, wait=1, warmup=1, active=2, audit=True) as recording:
        for _ in range(5):
            step()
            recording.step()
    assert recording.profile is not None
    assert recording.profile.audit is not None
    assert recording.profile.audit.steps == 0
    assert "ended before" in recording.profile.audit.left_out
    assert [one for one in recording.profile.findings if one.code == "DS033"] == []


def test_behind_a_window_that_was_cut_short_of_memory_steps_are_looked_at_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr("deepscope.capture.machine_use.EndMemory.shortage", lambda _: (4 << 30, 6 << 30))
    step = fine_tuning(is_frozen=False)
    with deepscope.profile(tmp_path, root=TESTS, wait=1, warmup=1, active=3, audit=True) as recording:
        for _ in range(2):
            step()
            recording.step()
        step()
        with pytest.warns(deepscope.RecordingWarning, match="ends early"):
            recording.step()
        for _ in range(5):
            step()
            recording.step()
    assert recording.profile is not None
    assert recording.profile.audit is not None
    assert (recording.profile.audit.steps, recording.profile.audit.left_out) == (STEPS, "")


def test_a_recording_looks_at_nothing_unless_it_is_asked_to(tmp_path):
    step = fine_tuning(is_frozen=False)
    with deepscope.profile(tmp_path, root=TESTS, wait=1, warmup=1, active=2) as recording:
        for _ in range(8):
            step()
            recording.step()
    assert recording.profile is not None
    assert recording.profile.audit is None


def test_of_an_operator_that_gives_two_gradients_half_is_unused():
    """A convolution's gradients of its input, which the generator needs, and of its weight."""
    generator, critic = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 1, 3, padding=1, bias=False)
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.01) for one in (generator, critic)]

    def step() -> None:
        x = torch.randn(2, 1, 8, 8)
        optimizers[1].zero_grad()
        critic(generator(x).detach()).mean().backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        critic(generator(x)).mean().backward()
        optimizers[0].step()

    (one,) = looked_at(step).account.gradients
    (use,) = [use for use in one.operators if use.name == "aten::convolution_backward" and use.unused]
    assert one.parameters == 1
    assert use.part == pytest.approx(0.25, abs=0.05), "half of one of the two calls of that line"
