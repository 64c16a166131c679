"""The account of loops over real loaders, by a clock that the loops move: each nanosecond is in one part."""

from __future__ import annotations

import io
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from deepscope.capture.whole_run.loader_passes import ModelModes
from deepscope.capture.whole_run.run_watch import PausedSteps, RunWatch
from deepscope.trace.format.run_account import RunAccount

FETCH, STEP, VALIDATE, TAIL = 3, 10, 50, 1

Sleep = Callable[[int], None]


class Items(Dataset):
    """Each item takes a while, and `inner` of whoever makes it is called."""

    def __init__(self, sleep: Sleep, count: int, inner: Callable[[], Any] = lambda: None) -> None:
        self.sleep, self.count, self.inner = sleep, count, inner

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> torch.Tensor:
        self.inner()
        self.sleep(FETCH)
        return torch.ones(2)


class Job:
    """A model, its optimizer, and the watch of its run, which began a moment ago."""

    def __init__(self, sleep: Sleep, *, begins_step: bool = False) -> None:
        self.net = torch.nn.Linear(2, 2)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.watch = RunWatch(begins_step=begins_step).listen()
        self.sleep = sleep

    def loader(self, count: int) -> DataLoader:
        return DataLoader(Items(self.sleep, count), batch_size=None)

    def step(self) -> None:
        self.sleep(STEP)
        self.watch.end_step()
        self.sleep(TAIL)

    def train(self, loader: Any) -> None:
        for _ in loader:
            self.step()

    @torch.no_grad()
    def validate(self, loader: Any) -> None:
        for _ in loader:
            self.sleep(VALIDATE)

    def validate_in_eval_mode(self, loader: Any) -> None:
        self.net.eval()
        for _ in loader:
            with torch.no_grad():
                self.sleep(VALIDATE)
        self.net.train()

    def times(self) -> dict[str, int]:
        return times(self.account())

    def account(self) -> RunAccount:
        account = self.watch.account()
        assert account is not None
        return account


def times(account: RunAccount) -> dict[str, int]:
    assert sum(part.time_ns for part in account.parts) == account.duration_ns
    return {part.name: part.time_ns for part in account.parts if part.time_ns}


def counts(account: RunAccount) -> dict[str, int]:
    return {part.name: part.times for part in account.parts if part.times}


def steps_of_epochs(account: RunAccount) -> list[int]:
    return [one.steps for one in account.epochs]


@pytest.fixture
def job(sleep: Sleep) -> Iterator[Job]:
    one = Job(sleep)
    yield one
    one.watch.close()


def test_a_step_lasts_from_the_wait_for_its_batch_to_the_next_one(job: Job) -> None:
    job.sleep(100)
    job.train(job.loader(4))
    job.sleep(20)
    job.train(job.loader(3))
    account = job.account()
    assert times(account) == {"start": 100, "data": 7 * FETCH, "steps": 7 * (STEP + TAIL), "rest": 20}
    assert counts(account) == {"steps": 7, "data": 7}
    assert account.first_step_ns == FETCH + STEP
    assert [(one.steps, one.data_ns, one.steps_ns) for one in account.epochs] == [
        (4, 4 * FETCH, 4 * (STEP + TAIL)),
        (3, 3 * FETCH, 3 * (STEP + TAIL)),
    ]


@pytest.mark.parametrize("way", ["validate", "validate_in_eval_mode"])
@pytest.mark.parametrize("batches", [1, 4])
def test_validation_between_epochs_is_an_evaluation_with_its_wait_for_data(job: Job, way: str, batches: int) -> None:
    validation = job.loader(batches)
    for _ in range(2):
        job.train(job.loader(3))
        getattr(job, way)(validation)
        job.sleep(5)
    account = job.account()
    assert times(account) == {
        "data": 6 * FETCH,
        "steps": 6 * (STEP + TAIL),
        "evaluation": 2 * batches * (FETCH + VALIDATE),
        "rest": 10,
    }
    assert counts(account) == {"steps": 6, "data": 6, "evaluation": 2}
    assert steps_of_epochs(account) == [3, 3]


@pytest.mark.parametrize("way", ["validate", "validate_in_eval_mode"])
@pytest.mark.parametrize("is_before_step", [True, False])
def test_validation_in_the_middle_of_an_epoch_is_no_part_of_the_step(job: Job, way: str, is_before_step: bool) -> None:
    for number, _ in enumerate(job.loader(6)):
        if number % 3 == 2 and is_before_step:
            getattr(job, way)(job.loader(4))
        job.step()
        if number % 3 == 2 and not is_before_step:
            getattr(job, way)(job.loader(4))
    account = job.account()
    found = times(account)
    assert found["evaluation"] == 2 * 4 * (FETCH + VALIDATE)
    assert found["data"] == 6 * FETCH
    assert found["steps"] + found.get("rest", 0) == 6 * (STEP + TAIL)
    assert found.get("rest", 0) == (0 if is_before_step else 2 * TAIL)  # what is behind a step may be anything
    assert counts(account) == {"steps": 6, "data": 6, "evaluation": 2}
    assert steps_of_epochs(account) == [6]


def test_a_pass_with_gradients_in_training_mode_without_steps_is_something_else(job: Job) -> None:
    job.train(job.loader(2))
    for _ in job.loader(4):  # the statistics of a data set
        job.sleep(VALIDATE)
    job.train(job.loader(2))
    for _ in job.loader(4):
        job.sleep(VALIDATE)
    account = job.account()
    assert times(account) == {
        "data": 4 * FETCH, "steps": 4 * (STEP + TAIL), "rest": 8 * (FETCH + VALIDATE),
    }  # fmt: skip
    assert steps_of_epochs(account) == [2, 2]


def test_two_loaders_that_are_zipped_give_one_step_its_batches(job: Job) -> None:
    for _ in range(2):
        job.train(zip(job.loader(3), job.loader(4), strict=False))
    account = job.account()
    assert times(account) == {"data": 12 * FETCH, "steps": 6 * (STEP + TAIL)}
    assert steps_of_epochs(account) == [3, 3]


def test_a_second_loader_that_begins_anew_within_a_step_ends_no_epoch(job: Job) -> None:
    unlabeled = job.loader(2)
    more = iter(unlabeled)
    for _ in job.loader(5):
        try:
            next(more)
        except StopIteration:
            more = iter(unlabeled)
            next(more)
        job.step()
    account = job.account()
    assert times(account) == {"data": 10 * FETCH, "steps": 5 * (STEP + TAIL)}
    assert steps_of_epochs(account) == [5]


def test_all_batches_that_gradients_are_gathered_over_belong_to_one_step(job: Job) -> None:
    for _ in range(2):
        for number, _ in enumerate(job.loader(5)):
            if number % 2:
                job.step()
            else:
                job.sleep(STEP)
        job.validate(job.loader(1))
    account = job.account()
    assert times(account) == {
        "data": 10 * FETCH,
        "steps": 2 * (5 * STEP + 2 * TAIL),
        "evaluation": 2 * (FETCH + VALIDATE),
    }
    assert counts(account) == {"steps": 4, "data": 4, "evaluation": 2}
    assert steps_of_epochs(account) == [2, 2]


def test_a_step_over_a_whole_pass_is_a_step_and_an_epoch(job: Job) -> None:
    job.train(job.loader(1))
    for _ in job.loader(3):
        job.sleep(STEP)
    job.step()
    account = job.account()
    assert times(account) == {"data": 4 * FETCH, "steps": 5 * STEP + TAIL, "rest": TAIL}
    assert counts(account) == {"steps": 2, "data": 2}


def test_a_loop_that_is_left_ends_its_epoch_and_what_follows_is_no_step(job: Job) -> None:
    loader = job.loader(9)
    for _ in range(2):
        for number, _ in enumerate(loader):
            job.step()
            if number == 2:
                break
        job.sleep(70)
    account = job.account()
    assert times(account) == {"data": 6 * FETCH, "steps": 6 * (STEP + TAIL), "rest": 140}
    assert steps_of_epochs(account) == [3, 3]


@pytest.mark.parametrize("is_left", [False, True])
def test_an_evaluation_on_the_training_data_is_known_as_one(job: Job, *, is_left: bool) -> None:
    items, others = Items(job.sleep, 3), Items(job.sleep, 5)
    training = DataLoader(items, batch_size=None)
    for data in (training, DataLoader(items, batch_size=None), DataLoader(others, batch_size=None)):
        job.train(training)
        with torch.no_grad():
            for number, _ in enumerate(data):
                job.sleep(VALIDATE)
                if is_left and number == 1:
                    break
    assert job.account().repeated_data_ns == 2 * (2 if is_left else 3) * (FETCH + VALIDATE)
    assert job.times()["evaluation"] == (6 if is_left else 11) * (FETCH + VALIDATE)


def test_validation_that_is_left_is_an_evaluation(job: Job) -> None:
    for with_gradients in (False, True):
        job.train(job.loader(2))
        _validate_two(job, with_gradients=with_gradients)
        job.sleep(30)
    assert job.times() == {
        "data": 4 * FETCH, "steps": 4 * (STEP + TAIL), "evaluation": 4 * (FETCH + VALIDATE), "rest": 60,
    }  # fmt: skip


def _validate_two(job: Job, *, with_gradients: bool) -> None:
    job.net.eval()
    with torch.set_grad_enabled(with_gradients):
        for number, _ in enumerate(job.loader(9)):
            job.sleep(VALIDATE)
            if number == 1:
                break
    job.net.train()


def ahead(loader: DataLoader) -> Iterator[Any]:
    """As Accelerate does."""
    batches = iter(loader)
    now = next(batches)
    while True:
        try:
            then = next(batches)
        except StopIteration:
            yield now
            return
        yield now
        now = then


def test_batches_that_are_fetched_ahead_leave_the_last_step_in_its_epoch(job: Job) -> None:
    for _ in range(2):
        job.train(ahead(job.loader(4)))
        job.validate_in_eval_mode(ahead(job.loader(3)))
        job.sleep(5)
    account = job.account()
    assert times(account) == {
        "data": 8 * FETCH,
        "steps": 8 * STEP + 6 * TAIL,
        "evaluation": 6 * (FETCH + VALIDATE),
        "rest": 10 + 2 * TAIL,
    }
    assert counts(account) == {"steps": 8, "data": 8, "evaluation": 2}
    assert steps_of_epochs(account) == [4, 4]


def test_batches_fetched_ahead_of_a_step_that_ends_evaluation_mode_are_no_evaluation(job: Job) -> None:
    for _ in range(3):
        for _ in ahead(job.loader(4)):
            job.net.train()
            job.step()
        job.net.eval()
        for _ in ahead(job.loader(3)):
            with torch.no_grad():
                job.sleep(VALIDATE)
    account = job.account()
    found = times(account)
    assert found["evaluation"] == 9 * (FETCH + VALIDATE)
    assert found["data"] + found["steps"] + found["rest"] == 12 * (FETCH + STEP + TAIL)
    assert counts(account) == {"steps": 12, "data": 12, "evaluation": 3}


def test_training_batches_that_are_fetched_without_gradients_are_no_evaluation(job: Job) -> None:
    batches = iter(job.loader(6))
    for _ in range(6):
        with torch.no_grad():
            next(batches)
        job.step()
    account = job.account()
    found = times(account)
    assert set(found) == {"start", "data", "steps", "rest"}
    assert found["start"] == FETCH + STEP  # until a step has ended nothing tells that the first batch was for one
    assert counts(account) == {"steps": 5, "data": 5}


def test_validation_on_a_batch_now_and_then_is_an_evaluation(job: Job) -> None:
    validation = iter(job.loader(9))
    for number, _ in enumerate(job.loader(6)):
        job.step()
        if number % 3 == 2:
            with torch.no_grad():
                next(validation)
                job.sleep(VALIDATE)
    found = job.times()
    assert found["evaluation"] == 2 * (FETCH + VALIDATE)
    assert found["data"] == 6 * FETCH


def test_a_loader_that_is_made_anew_for_each_step_makes_no_epochs(job: Job) -> None:
    loader = job.loader(9)
    for _ in range(4):
        next(iter(loader))
        job.step()
    account = job.account()
    assert times(account)["data"] == 3 * FETCH  # of the first one nobody knows that it is for a step
    assert len(account.epochs) == 1


def test_what_is_loaded_before_the_first_step_is_the_start(job: Job) -> None:
    for _ in job.loader(5):  # the whole data set, into memory
        job.sleep(1)
    next(iter(job.loader(5)))
    job.validate(job.loader(2))
    for _ in range(3):
        job.step()
    account = job.account()
    assert times(account) == {
        "start": 5 * (FETCH + 1) + FETCH + 2 * (FETCH + VALIDATE) + STEP, "steps": 2 * (TAIL + STEP), "rest": TAIL,
    }  # fmt: skip


def test_without_a_loader_the_wait_for_data_is_unknown_and_the_first_step_has_no_known_begin(job: Job) -> None:
    job.sleep(40)
    for _ in range(4):
        job.step()
    job.sleep(60)
    account = job.account()
    assert {part.name for part in account.parts} == {"steps", "recording", "start", "rest"}
    assert times(account) == {"start": 40 + STEP, "steps": 3 * (TAIL + STEP), "rest": 60 + TAIL}
    assert counts(account) == {"steps": 3}
    assert account.first_step_ns == 0


def test_the_first_step_may_begin_with_the_run(sleep: Sleep) -> None:
    job = Job(sleep, begins_step=True)
    for _ in range(4):
        job.step()
    account = job.account()
    job.watch.close()
    assert times(account) == {"steps": 3 * (TAIL + STEP) + STEP, "rest": TAIL}
    assert counts(account) == {"steps": 4}
    assert account.first_step_ns == STEP


def test_a_loader_of_validation_alone_says_nothing_of_the_wait_for_data(job: Job) -> None:
    job.step()
    job.validate(job.loader(2))
    job.step()
    account = job.account()
    assert "data" not in {part.name for part in account.parts}
    assert times(account)["evaluation"] == 2 * (FETCH + VALIDATE)


def test_checkpoints_are_taken_out_of_what_they_interrupt(job: Job) -> None:
    def save() -> None:
        Slow.sleep = job.sleep
        torch.save(Slow(), io.BytesIO())

    save()  # before the first step
    for _ in job.loader(2):
        save()
        job.step()
        save()
    with torch.no_grad():
        for _ in job.loader(1):
            save()
    save()
    account = job.account()
    assert times(account) == {
        "start": 7, "data": 2 * FETCH, "steps": 2 * (STEP + TAIL), "checkpoint": 6 * 7, "evaluation": FETCH,
    }  # fmt: skip
    assert counts(account)["checkpoint"] == 6


class Slow:
    """Takes a while to be saved."""

    sleep: Sleep

    def __reduce__(self) -> Any:
        Slow.sleep(7)
        return (Slow, ())


def test_what_a_data_set_loads_and_saves_is_part_of_the_wait(job: Job) -> None:
    def inner() -> None:
        next(iter(job.loader(1)))
        torch.save(1, io.BytesIO())
        job.watch.end_step()

    job.train(DataLoader(Items(job.sleep, 4, inner), batch_size=None))
    account = job.account()
    assert times(account) == {"data": 8 * FETCH, "steps": 4 * (STEP + TAIL)}
    assert counts(account) == {"steps": 4, "data": 4}


def test_other_threads_are_not_seen(job: Job) -> None:
    def elsewhere() -> None:
        for _ in job.loader(3):
            torch.save(1, io.BytesIO())
        job.watch.end_step()

    for _ in job.loader(2):
        job.step()
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    account = job.account()
    assert times(account) == {"data": 2 * FETCH, "steps": 2 * (STEP + TAIL) + 6 * FETCH}
    assert counts(account) == {"steps": 2, "data": 2}


def test_a_run_may_train_on_another_thread_than_it_began_on(job: Job) -> None:
    job.sleep(50)
    for _ in range(2):
        thread = threading.Thread(target=job.train, args=(job.loader(3),))
        thread.start()
        thread.join()
    found = job.times()
    assert found["data"] >= 3 * FETCH
    assert counts(job.account())["steps"] >= 5


def test_an_exception_of_the_data_set_reaches_the_program_and_the_account_goes_on(job: Job) -> None:
    def fail() -> None:
        raise KeyError("boom")

    job.train(job.loader(2))
    for _ in range(2):
        with pytest.raises(KeyError, match="boom"):
            job.train(DataLoader(Items(job.sleep, 4, fail), batch_size=None))
    job.train(job.loader(2))
    assert job.times() == {"data": 4 * FETCH, "steps": 4 * (STEP + TAIL)}


def test_persistent_workers_give_each_epoch_its_steps(job: Job) -> None:
    loader = DataLoader(torch.ones(4, 2), batch_size=None, num_workers=1, persistent_workers=True)
    for _ in range(3):
        for number, _ in enumerate(loader):
            job.step()
            if number == 2:
                break
        job.sleep(20)
    account = job.account()
    assert counts(account) == {"steps": 9, "data": 9}
    assert steps_of_epochs(account) == [3, 3, 3]


def test_an_account_while_the_run_goes_on_changes_nothing(job: Job) -> None:
    for _ in job.loader(4):
        job.watch.account()
        job.step()
        times(job.account())
    job.validate(job.loader(2))
    assert job.times() == {
        "data": 4 * FETCH, "steps": 4 * (STEP + TAIL), "evaluation": 2 * (FETCH + VALIDATE),
    }  # fmt: skip
    assert steps_of_epochs(job.account()) == [4]


def test_the_recorders_own_work_is_taken_out_of_where_it_was_done(job: Job) -> None:
    for _ in job.loader(2):
        job.step()
        job.sleep(6)
        job.watch.give_to_recording(6)
    assert job.times() == {"data": 2 * FETCH, "steps": 2 * (STEP + TAIL), "recording": 12}


def test_the_search_for_models_is_the_recorders_own_work(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = ModelModes._scan

    def slowly(modes: ModelModes) -> None:
        job.sleep(1000)
        scan(modes)

    monkeypatch.setattr(ModelModes, "_scan", slowly)
    job.train(job.loader(2))
    job.validate_in_eval_mode(job.loader(2))
    assert job.times() == {
        "data": 2 * FETCH, "steps": 2 * (STEP + TAIL), "evaluation": 2 * (FETCH + VALIDATE), "recording": 1000,
    }  # fmt: skip


class Pretended:
    """Stands for a loader, or for an iterator over one."""


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_told_in_whatever_order_the_parts_sum_to_the_run_and_none_is_below_zero(
    sleep: Sleep, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(ModelModes, "is_evaluating", lambda _: chance.random() < 0.2)
    watch = RunWatch(begins_step=chance.random() < 0.5)
    loaders = [Pretended() for _ in range(3)]
    iterators = [Pretended() for _ in range(4)]
    for _ in range(400):
        sleep(chance.randrange(20))
        with torch.set_grad_enabled(chance.random() < 0.7):
            watch._has_gradients = torch.is_grad_enabled
            told = chance.randrange(16)
            place = chance.randrange(4)
            if told == 0:
                watch.opening(chance.choice(loaders))
            elif told == 1:
                watch.opened(chance.choice(loaders), iterators[place])
            elif told < 4:
                watch.fetching(iterators[place])
            elif told < 6:
                watch.fetched(iterators[place])
            elif told == 6:
                watch.exhausted(iterators[place])
            elif told == 7:
                chance.choice((watch.failed, watch.saving, watch.saved))()
            elif told == 8:
                iterators[place] = Pretended()  # the one before is gone
            elif told == 9:
                chance.choice((watch.train, lambda: watch.count_steps(2)))()
            elif told < 12:
                chance.choice((watch.evaluating, watch.training, lambda: watch.end_part("logging")))()
            elif told == 12:
                loaders[place % 3] = Pretended()
            else:
                watch.end_step()
        account = watch.account()
        if account is not None:
            times(account)
            assert all(part.time_ns >= 0 and part.times >= 0 for part in account.parts)
            assert all(min(one.steps, one.steps_ns, one.data_ns) >= 0 for one in account.epochs)


def evaluate_without_loader(job: Job) -> None:
    job.net.eval()
    job.sleep(VALIDATE)
    torch.save(job.net.state_dict(), io.BytesIO())
    job.sleep(VALIDATE)
    job.net.train()


def test_without_a_loader_an_evaluation_lasts_from_eval_to_train(job: Job) -> None:
    for number in range(9):
        job.step()
        if number % 3 == 2:
            evaluate_without_loader(job)
            job.sleep(5)
    account = job.account()
    assert times(account)["evaluation"] == 3 * 2 * VALIDATE
    assert counts(account)["evaluation"] == 3
    assert times(account)["steps"] == 8 * (STEP + TAIL) + 2 * 5  # the first one's begin is unknown
    assert counts(account)["checkpoint"] == 3


@pytest.mark.parametrize("way", ["in each step", "never back", "a step in evaluation mode"])
def test_a_model_in_evaluation_mode_is_no_evaluation_without_a_loader(job: Job, way: str) -> None:
    job.step()
    job.step()
    for _ in range(4):
        job.step()
        if way == "in each step":
            evaluate_without_loader(job)
        elif way == "a step in evaluation mode":
            job.step()
            job.net.eval()
    if way == "never back":
        job.net.eval()
        job.sleep(VALIDATE)
    assert counts(job.account()).get("evaluation", 0) == (way == "in each step")  # the first may be one


def test_an_evaluation_over_a_loader_in_evaluation_mode_is_counted_once(job: Job) -> None:
    for _ in range(3):
        job.train(job.loader(2))
        job.validate_in_eval_mode(job.loader(2))
    assert counts(job.account())["evaluation"] == 3


def test_what_a_program_tells_of_has_all_the_time_since_the_step_before(job: Job) -> None:
    for _ in job.loader(2):
        job.step()
        job.sleep(30)
        job.watch.end_part("logging")
        job.sleep(200)
        job.watch.saving()
        job.sleep(100)
        job.watch.saved()
        job.watch.end_part("checkpoint")
    account = job.account()
    steps = {"data": 2 * FETCH, "steps": 2 * STEP, "logging": 2 * (TAIL + 30), "checkpoint": 2 * 300}
    assert times(account) == steps
    assert counts(account) == {"steps": 2, "data": 2, "logging": 2, "checkpoint": 2}


def test_a_checkpoint_of_several_files_is_one_where_its_end_is_told(job: Job) -> None:
    job.train(job.loader(2))
    for _ in range(3):
        job.watch.saving()
        job.watch.saved()
    job.watch.end_part("checkpoint")
    assert counts(job.account())["checkpoint"] == 1


def test_a_loader_is_an_evaluations_where_the_program_says_so(job: Job) -> None:
    for _ in range(2):
        job.train(job.loader(3))
        job.watch.expect_evaluation(is_next=True)
        for _ in job.loader(4):
            job.sleep(VALIDATE)
        job.sleep(70)
        job.watch.end_part("evaluation")
        job.watch.expect_evaluation(is_next=False)
    account = job.account()
    assert times(account) == {
        "data": 6 * FETCH,
        "steps": 6 * (STEP + TAIL),
        "evaluation": 2 * (4 * (FETCH + VALIDATE) + 70),
    }
    assert counts(account) == {"steps": 6, "data": 6, "evaluation": 2}


def pauses(job: Job) -> list[str]:
    """What the recording of steps is asked to do from here on."""
    asked: list[str] = []
    job.watch.paused = PausedSteps(lambda: asked.append("pause"), lambda: asked.append("resume"))
    return asked


def evaluate(job: Job, way: str, asked: list[str]) -> None:
    if way == "without a loader":
        job.net.eval()
        asked.append("evaluation")
        job.net.train()
        return
    validate = job.validate if way == "without gradients" else job.validate_in_eval_mode
    validate(job.loader(3))
    asked.append("evaluation")
    validate(job.loader(1))  # a second one
    job.net.train()


WAYS = ("without gradients", "in evaluation mode", "without a loader")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("at", ["within an epoch", "behind it"])
def test_steps_pause_while_an_evaluation_goes_on(job: Job, way: str, at: str) -> None:
    asked = pauses(job)
    for _ in range(3):
        for number, _ in enumerate(job.loader(4)):
            job.step()
            asked.append("step")
            if at == "within an epoch" and number == 1:
                evaluate(job, way, asked)
        if at == "behind it":
            evaluate(job, way, asked)
    paused = {"pause": 1, "resume": -1}
    depth = [sum(paused.get(one, 0) for one in asked[: number + 1]) for number in range(len(asked))]
    assert set(depth) == {0, 1}
    assert all(depth[number] == 0 for number, one in enumerate(asked) if one == "step")
    if way == "without a loader":
        assert all(depth[number] == 1 for number, one in enumerate(asked) if one == "evaluation")
    assert [one for one in asked if one in ("step", "pause")].count("pause") >= 3


@pytest.mark.parametrize("way", WAYS)
def test_an_evaluation_behind_each_step_is_part_of_it(job: Job, way: str) -> None:
    asked = pauses(job)
    for _ in job.loader(6):
        job.step()
        evaluate(job, way, asked)
    assert "pause" not in asked


def test_an_evaluation_in_the_middle_of_a_step_is_part_of_it(job: Job) -> None:
    asked = pauses(job)
    for number, _ in enumerate(job.loader(8)):
        if number % 3 == 2:
            evaluate(job, "in evaluation mode", asked)
        job.step()
    assert "pause" not in asked


def test_steps_go_on_however_an_evaluation_ends(job: Job) -> None:
    asked = pauses(job)
    job.train(job.loader(4))
    job.net.eval()
    assert asked == ["pause"]
    job.step()  # it goes on in evaluation mode
    assert asked == ["pause", "resume"]
    job.train(job.loader(4))
    for _ in job.loader(4):
        with torch.no_grad():
            job.validate(job.loader(3))
        break
    job.step()
    assert asked.count("pause") == asked.count("resume")
