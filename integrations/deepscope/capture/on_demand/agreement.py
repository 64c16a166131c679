"""All ranks of a job record the same steps: one asks, each answers by itself, and none waits for another.

A proposal names a step that lies ahead of all ranks. It holds once every rank has confirmed that it has not come so far
yet, twice: that it knows of it, and that it holds. A rank that has come too far refuses; then the others drop it, and a
later step is proposed. A window that opened on some ranks meanwhile is thrown away.
"""

from __future__ import annotations

import math
import secrets
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from deepscope.capture.on_demand.jobs import Client, GoneError, SilentError
from deepscope.capture.on_demand.protocol import ControlAnswer, ControlRequest
from deepscope.errors import ControlError

_POLL_SECONDS = 0.1
_ATTEMPTS = 8
_TO_MATCH = 4
_STALLED_SECONDS = 30.0
_STALLED_STEPS = 20


@dataclass(frozen=True)
class RecordingRequest:
    """What is to be recorded: so many steps, or so many seconds."""

    steps: int | None = None
    seconds: float | None = None
    warmup: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class _Rank:
    client: Client
    answer: ControlAnswer
    problem: str = ""
    """Why nothing more is to be had of it."""
    offset: int = 0
    """What its count is ahead of the first rank's for the same step; see `matching.py`."""
    asked: str = ""
    """The id of the window that it was asked for."""
    is_told: bool = False
    """Whether it was said that it makes no steps."""

    @property
    def step(self) -> int:
        """Its step, by the first rank's count."""
        return self.answer.step - self.offset

    @property
    def is_recording(self) -> bool:
        """Whether its window is open."""
        return bool(self.asked) and self.answer.id == self.asked and self.answer.state == "recording"

    @property
    def is_over(self) -> bool:
        """Whether its window is; what became of the window before that says nothing."""
        is_ours = bool(self.asked) and self.answer.id == self.asked
        return bool(self.problem) or (is_ours and self.answer.state in {"saved", "failed"})


class AgreedRecording:
    """A window on all ranks that `clients` stand at.

    `show` is told a line of progress, `tell` what is to stay on the screen. Leaving the clients ends the window.
    """

    def __init__(
        self,
        clients: Sequence[Client],
        wanted: RecordingRequest,
        *,
        show: Callable[[str], None] = lambda _: None,
        tell: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._wanted = wanted
        self._show = show
        self._tell = tell
        self._clock = clock
        self._sleep = sleep
        self._id = secrets.token_hex(6)
        self._pool = ThreadPoolExecutor(max_workers=max(1, len(clients)), thread_name_prefix="deepscope-attach")
        looks = list(self._pool.map(lambda one: one.ask(ControlRequest("look")), clients))
        self._ranks = [_Rank(client, answer) for client, answer in zip(clients, looks, strict=True)]
        self._ranks.sort(key=lambda one: (one.answer.rank, one.answer.pid))
        self._first = 0
        self._began = clock()

    def record(self) -> list[ControlAnswer]:
        """Returns where each process stands when all windows are saved, or failed.

        Raises `ControlError` if no window could be agreed on.
        """
        try:
            if self._wanted.seconds is not None and not any(one.answer.step for one in self._ranks):
                self._record_at_once(self._wanted.seconds)
            else:
                self._record_steps()
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)
        for one in self._ranks:
            one.answer.problem = one.problem or one.answer.problem
        return [one.answer for one in self._ranks]

    def _match(self) -> None:
        """Ranks that were joined in flight are matched by the times of their steps."""
        if len(self._ranks) < 2 or not any(one.answer.is_joined for one in self._ranks):
            return
        self._wait(lambda: all(len(one.answer.ends_ns) >= _TO_MATCH for one in self._ranks))
        found = offsets([(one.answer.step, one.answer.ends_ns) for one in self._ranks])
        if found is None:
            self._tell(
                "the ranks do not make their steps together: windows hold the same number of steps, maybe others"
            )
            found = [one.answer.step - self._ranks[0].answer.step for one in self._ranks]
        for one, offset in zip(self._ranks, found, strict=True):
            one.offset = offset

    def _record_steps(self) -> None:
        wanted = self._wanted
        self._match()
        self._first = self._agree(
            lambda step: ControlRequest(
                "start",
                self._id,
                step=step + wanted.warmup,
                steps=wanted.steps,
                warmup=wanted.warmup,
                options=dict(wanted.options),
            )
        )
        self._first += wanted.warmup
        if wanted.seconds is not None:
            self._wait(lambda: all(one.is_over or one.step >= self._first for one in self._ranks))
            until = self._clock() + wanted.seconds
            self._wait(lambda: self._clock() >= until)
            if any(not one.is_over for one in self._ranks):
                self._agree(lambda step: ControlRequest("end", self._id, step=step))
        self._wait(lambda: False)

    def _record_at_once(self, seconds: float) -> None:
        request = ControlRequest("now", self._id, warmup=0, options=dict(self._wanted.options))
        self._check(self._ask_all(request))
        self._wait(lambda: all(one.is_over or one.is_recording for one in self._ranks))
        until = self._clock() + seconds
        self._wait(lambda: self._clock() >= until)
        self._ask_all(ControlRequest("stop", self._id))
        self._wait(lambda: False)

    def _agree(self, request_for: Callable[[int], ControlRequest]) -> int:
        """The step that all have confirmed; it is given to `request_for` to make the proposal."""
        margin = 0
        for _ in range(_ATTEMPTS):
            before = self._clock()
            self._look()
            step = max((one.step for one in self._ranks if not one.is_over), default=0)
            lengths = [one.answer.step_ns for one in self._ranks if one.answer.step_ns]
            took = max(self._clock() - before, 0.05)
            margin = max(2 * margin, 1 if not lengths else math.ceil(4 * took / (min(lengths) / 1e9)))
            proposal = request_for(step + margin)
            answers = self._ask_all(proposal)
            if all(one.accepted for one in answers):
                answers = self._ask_all(ControlRequest("commit", self._id))
                if all(one.accepted for one in answers):
                    return step + margin
            refused = [one for one in answers if not one.accepted]
            if not all(one.is_late for one in refused):
                self._check(refused)
            if proposal.kind == "start":
                self._ask_all(ControlRequest("drop", self._id))
                self._wait(lambda: all(one.answer.state != "recording" for one in self._ranks))
                self._id = secrets.token_hex(6)
        raise ControlError(f"no step could be agreed on in {_ATTEMPTS} attempts: the ranks are too far apart")

    def _check(self, answers: Sequence[ControlAnswer]) -> None:
        for one in answers:
            if not one.accepted:
                raise ControlError(f"process {one.pid} (rank {one.rank}): {one.problem}")

    def _ask_all(self, request: ControlRequest) -> list[ControlAnswer]:
        asked = [one for one in self._ranks if not one.problem]
        list(self._pool.map(lambda one: self._ask(one, request), asked))
        return [one.answer for one in asked if not one.problem]

    def _ask(self, rank: _Rank, request: ControlRequest) -> None:
        if request.step:
            request = structs.replace(request, step=request.step + rank.offset, first_number=request.step)
        if request.opens_window:
            rank.asked = request.id
        try:
            rank.answer = rank.client.ask(request)
        except SilentError as error:
            if not rank.is_told:
                rank.is_told = True
                self._tell(str(error))
            if request.kind != "look":
                raise
        except GoneError:
            rank.problem = "it ended before its window was saved"
            if rank.answer.folder:
                rank.problem += f"; what it could save lies in {rank.answer.folder}"

    def _look(self) -> None:
        self._ask_all(ControlRequest("look"))

    def _wait(self, is_done: Callable[[], bool]) -> None:
        """Until `is_done`, or no window is left to wait for."""
        while True:
            self._look()
            if all(one.is_over for one in self._ranks) or is_done():
                return
            self._show(self._line())
            self._tell_of_stalled()
            self._sleep(_POLL_SECONDS)

    def _line(self) -> str:
        left = [one for one in self._ranks if not one.is_over] or self._ranks
        slowest = min(left, key=lambda one: one.step)
        answer = slowest.answer
        of_ranks = f" on {len(self._ranks)} ranks" if len(self._ranks) > 1 else ""
        if answer.state == "saving":
            return f"saving{of_ranks}"
        if answer.state == "recording" and slowest.step >= self._first:
            if self._wanted.steps is not None:
                return f"recording step {answer.recorded + 1} of {self._wanted.steps}{of_ranks}"
            return f"recording{of_ranks}, {answer.recorded} steps so far"
        if self._first:
            return f"waiting for step {self._first}{of_ranks}, now at step {slowest.step}"
        return f"waiting{of_ranks}"

    def _tell_of_stalled(self) -> None:
        for one in self._ranks:
            answer = one.answer
            if one.is_told or one.is_over or answer.state == "saving":
                continue
            if not answer.ends_ns:
                if self._wanted.steps is not None and self._clock() - self._began > _STALLED_SECONDS / 3:
                    one.is_told = True
                    self._tell(f"{_name(answer)} has made no step yet; --time records programs without an optimizer")
                continue
            silent_ns = answer.now_ns - answer.ends_ns[-1]
            if silent_ns > max(_STALLED_SECONDS * 1e9, _STALLED_STEPS * answer.step_ns):
                one.is_told = True
                self._ask(one, ControlRequest("look", stack=True))
                where = f"; it stands at {one.answer.stack[-1]}" if one.answer.stack else ""
                own = next((line for line in reversed(one.answer.stack) if "site-packages" not in line), "")
                called = f", called from {own}" if own and own != one.answer.stack[-1] else ""
                self._tell(f"{_name(answer)} has made no step for {silent_ns / 1e9:.0f} s{where}{called}")


def _name(answer: ControlAnswer) -> str:
    return f"rank {answer.rank} (process {answer.pid})" if answer.world_size > 1 else f"process {answer.pid}"


# Which steps of several ranks are the same one, by when they ended: for ranks that began to count at different times.
#
# Ranks that sum up gradients end each step within one step's length of each other. So the ends of a step on two ranks
# are nearer to each other than to those of the steps around it.


_AGREEMENT = 0.75
"""This share of the steps must say the same."""


def offsets(ranks: Sequence[tuple[int, Sequence[int]]]) -> list[int] | None:
    """What each rank's count is ahead of the first one's; None where the ends do not tell.

    Args:
        ranks: the steps made so far and the times at which the newest of them ended, the last one last.
    """
    count, ends = ranks[0]
    found = [0]
    for other_count, other_ends in ranks[1:]:
        offset = _offset(count, ends, other_count, other_ends)
        if offset is None:
            return None
        found.append(offset)
    return found


def _offset(count: int, ends: Sequence[int], other_count: int, other_ends: Sequence[int]) -> int | None:
    if len(ends) < 2 or len(other_ends) < 2:
        return None
    votes: Counter[int] = Counter()
    for place, end in enumerate(ends):
        if not other_ends[0] <= end <= other_ends[-1]:
            continue
        behind = bisect_left(other_ends, end)
        nearest = min(
            range(max(behind - 1, 0), min(behind + 1, len(other_ends))), key=lambda i: abs(other_ends[i] - end)
        )
        number = count - (len(ends) - 1 - place)
        votes[other_count - (len(other_ends) - 1 - nearest) - number] += 1
    if not votes:
        return None
    offset, agreeing = votes.most_common(1)[0]
    return offset if agreeing >= _AGREEMENT * votes.total() else None
