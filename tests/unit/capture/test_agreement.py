"""How the ranks of a job agree on the steps that they record, by a simulated clock."""

import random

import pytest

from deepscope.capture.on_demand import jobs, protocol
from deepscope.capture.on_demand.agreement import AgreedRecording, RecordingRequest, offsets
from deepscope.capture.on_demand.protocol import ControlAnswer


class OneAfterTheOther:
    def __init__(self, **_):
        pass

    def map(self, function, items):
        return [function(item) for item in items]

    def shutdown(self, **_):
        pass


@pytest.fixture(autouse=True)
def one_after_the_other(monkeypatch):
    """The simulated clock cannot be in two threads."""
    monkeypatch.setattr("deepscope.capture.on_demand.agreement.ThreadPoolExecutor", OneAfterTheOther)


class Rank:
    """A process that makes steps as a simulated clock goes on, without a recorder."""

    def __init__(self, clock, number, length, joined=0.0, jitter=0.0):
        self.clock, self.length, self.joined, self.jitter = clock, length, joined, jitter
        self.entry = protocol.ControlEntry(pid=100 + number, control="")
        self.opened = self.closed = None
        self.order, self.held, self.end_at = None, False, None
        self.number, self.step = number, 0
        self.offset = -int(joined / length)

    def catch_up(self):
        steps = int(self.clock.now / self.length) + self.offset
        while self.step < steps:
            self.step += 1
            if self.order and self.held and self.step == self.order.step - self.order.warmup and self.opened is None:
                self.opened = self.order.first_number
            last = self.end_at or (self.order and self.order.steps and self.order.step + self.order.steps)
            if self.opened is not None and self.closed is None and last and self.step >= last:
                self.closed = last - (self.order.step - self.order.first_number)

    def ask(self, request):
        self.clock.now += self.clock.rng.random() * 0.02
        self.catch_up()
        problem = False
        if request.kind == "start":
            problem = self.step >= request.step - request.warmup
            if not problem:
                self.order, self.held, self.opened, self.closed, self.end_at = request, False, None, None, None
                self.proposed = None
        elif request.kind == "end":
            problem = self.step >= request.step
            self.proposed = request.step
        elif request.kind == "commit":
            at = self.proposed if self.proposed is not None else self.order.step - self.order.warmup
            problem = self.step >= at
            if not problem and self.proposed is not None:
                self.end_at, self.proposed = self.proposed, None
            elif not problem:
                self.held = True
        elif request.kind == "drop":
            self.order, self.opened, self.held = None, None, False
        ends = [int((self.step - i - self.offset) * self.length * 1e9) + 10**9 for i in range(min(self.step, 16))][::-1]
        state = "saved" if self.closed is not None else "recording" if self.opened is not None else "asked"
        return ControlAnswer(
            id=self.order.id if self.order else "",
            accepted=not problem, is_late=problem, pid=self.entry.pid, rank=self.number, world_size=4, step=self.step,
            step_ns=int(self.length * 1e9) if self.step > 1 else 0, ends_ns=ends,
            now_ns=int(self.clock.now * 1e9) + 10**9,
            state=state if self.order else "idle", is_joined=self.joined > 0,
            traces=["t"] if self.closed is not None else [],
        )  # fmt: skip

    def leave(self):
        pass


class Clock:
    def __init__(self, seed):
        self.now, self.rng = 10.0, random.Random(seed)

    def sleep(self, seconds):
        self.now += seconds


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "wanted", [RecordingRequest(steps=5), RecordingRequest(seconds=3.0), RecordingRequest(steps=1, warmup=0)]
)
def test_ranks_record_the_same_steps_however_fast_they_are(seed, wanted):
    clock = Clock(seed)
    length = 10 ** clock.rng.uniform(-3, 1)
    ranks = [Rank(clock, number, length) for number in range(4)]
    outcomes = AgreedRecording(ranks, wanted, clock=lambda: clock.now, sleep=clock.sleep).record()
    assert [one.problem for one in outcomes] == [""] * 4
    assert len({(one.opened, one.closed) for one in ranks}) == 1
    if wanted.steps is not None:
        assert ranks[0].closed - ranks[0].opened == wanted.steps
    else:
        assert (ranks[0].closed - ranks[0].opened) * length >= 3.0 - 2 * length


def test_a_window_after_another_one_begins_soon():
    clock = Clock(1)
    ranks = [Rank(clock, number, 0.5) for number in range(4)]
    clock.now = 5000.0
    for _ in range(3):
        began = clock.now
        AgreedRecording(ranks, RecordingRequest(steps=2), clock=lambda: clock.now, sleep=clock.sleep).record()
        assert ranks[0].opened * 0.5 - began < 3
        assert clock.now - began < 5


@pytest.mark.parametrize("seed", range(8))
def test_ranks_that_were_joined_in_flight_record_the_same_steps(seed):
    clock = Clock(seed)
    length = 10 ** clock.rng.uniform(-2, 0)
    joined = [0.001, *(clock.rng.uniform(0, 5) for _ in range(3))]
    ranks = [Rank(clock, number, length, joined=joined[number]) for number in range(4)]
    AgreedRecording(ranks, RecordingRequest(steps=5), clock=lambda: clock.now, sleep=clock.sleep).record()
    assert len({(one.opened, one.closed) for one in ranks}) == 1  # by the first rank's numbers
    assert len({one.order.step - one.offset for one in ranks}) == 1  # and in truth


class Enough(Exception):
    pass


class Limited(Clock):
    """For those who would wait forever."""

    def sleep(self, seconds):
        super().sleep(seconds)
        if self.now > 1000:
            raise Enough


def test_a_rank_that_dies_before_its_window_does_not_keep_the_others_open():
    clock = Limited(1)

    class Mortal(Rank):
        def ask(self, request):
            if clock.now > 20:
                raise jobs.GoneError
            return super().ask(request)

    ranks = [Rank(clock, 0, 8.0), Mortal(clock, 1, 8.0)]
    whole, dead = AgreedRecording(
        ranks, RecordingRequest(seconds=3.0), clock=lambda: clock.now, sleep=clock.sleep
    ).record()
    assert (whole.traces, whole.problem) == (["t"], "")
    assert dead.problem.startswith("it ended before its window was saved")


def test_a_rank_that_does_not_record_does_not_keep_the_others_open():
    """By time, in a program without steps."""
    clock = Limited(1)

    class Stepless:
        def __init__(self, number, is_chosen):
            self.entry, self.number, self.is_chosen = (
                protocol.ControlEntry(pid=100 + number, control=""),
                number,
                is_chosen,
            )
            self.id, self.state = "", "idle"

        def ask(self, request):
            if request.kind == "now":
                self.id, self.state = request.id, "recording" if self.is_chosen else "failed"
            elif request.kind == "stop" and self.is_chosen:
                self.state = "saved"
            return ControlAnswer(id=self.id, state=self.state, pid=self.entry.pid, rank=self.number)

    ranks = [Stepless(0, True), Stepless(1, False)]
    AgreedRecording(ranks, RecordingRequest(seconds=3.0), clock=lambda: clock.now, sleep=clock.sleep).record()
    assert [one.state for one in ranks] == ["saved", "failed"]
    assert clock.now < 20


def test_a_job_that_makes_no_step_is_told_with_its_place():
    clock = Clock(1)

    class Hung(Rank):
        def catch_up(self):
            if self.step < 50:
                super().catch_up()

        def ask(self, request):
            answer = super().ask(request)
            answer.stack = ["/me/train.py:7 step", "/x/site-packages/torch/distributed.py:9 all_reduce"] * request.stack
            return answer

    lines = []

    def tell(text):
        lines.append(text)
        raise Enough

    ranks = [Hung(clock, number, 0.5) for number in range(2)]
    with pytest.raises(Enough):
        AgreedRecording(
            ranks, RecordingRequest(steps=500), clock=lambda: clock.now, sleep=clock.sleep, tell=tell
        ).record()
    assert lines[0].startswith("rank 0 (process 100) has made no step for 30 s; it stands at /x/site-packages/torch/")
    assert lines[0].endswith("called from /me/train.py:7 step")


def test_steps_are_matched_by_their_ends():
    ends = [100, 200, 300, 400]
    assert offsets([(10, ends), (13, [end + 7 for end in ends]), (4, [195, 295, 395, 495])]) == [0, 3, -7]
    assert offsets([(10, ends), (10, [9000, 9100])]) is None
    assert offsets([(10, [1]), (10, [1])]) is None
