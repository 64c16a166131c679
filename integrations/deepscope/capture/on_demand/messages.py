"""The messages of a control server and its clients: one request, one answer, each a JSON object of bounded size.

The job does not trust what it reads: names are of known letters, numbers have bounds, and no field names a path.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec

from deepscope.errors import ControlError

if TYPE_CHECKING:
    from deepscope.capture.recorder import Recorder
    from deepscope.capture.schedule import Plan

VERSION = 1
LIMIT_BYTES = 1 << 16
"""Of one message."""

State: TypeAlias = Literal["idle", "asked", "recording", "saving", "saved", "failed"]
"""What becomes of the newest request; `idle` before the first one, and again after one was dropped."""

Kind: TypeAlias = Literal["look", "start", "end", "commit", "now", "stop", "drop"]
"""`look`: only tell where the job stands. `start`, `end`: propose the step at which a window begins, or ends; `commit`:
the proposal holds. `now`: record from now on, with or without steps. `stop`: end the window and save it; `drop`: end
it and save nothing."""

_Step = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
_Value: TypeAlias = bool | int | float | str | list[str] | None


class ControlRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What `deepscope attach` asks of one process."""

    kind: Kind
    id: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{0,32}$")] = ""
    """Of the window, the same on all ranks; it becomes part of the run's id."""
    version: int = VERSION
    step: _Step = 0
    """The first step that is recorded (`start`), or the first that is not (`end`)."""
    first_number: _Step | None = None
    """The number of the first recorded step in the trace; None for `step` itself."""
    steps: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    """How many steps are recorded; None for a window that `end` or `stop` ends."""
    warmup: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 1
    options: Annotated[dict[str, _Value], msgspec.Meta(max_length=40)] = {}
    """What is recorded, in place of what the job itself was started with."""
    stack: bool = False
    """Tell where the training thread stands."""
    number: _Step = 0
    """Stands in the answer, too, where the two are files."""


class ControlAnswer(msgspec.Struct, omit_defaults=True):
    """Where one process stands."""

    version: int = VERSION
    accepted: bool = True
    is_late: bool = False
    """Whether it was refused because the job has come too far; a later step may be accepted."""
    problem: str = ""
    """Why the request was not accepted, or why a window failed."""
    pid: int = 0
    rank: int = 0
    world_size: int = 1
    job: str = ""
    """The same for all ranks of a job."""
    folder: str = ""
    """Where the traces go."""
    state: State = "idle"
    id: str = ""
    """Of the newest request."""
    step: int = 0
    """How many steps were made: the number of the one that runs."""
    ends_ns: list[int] = []
    """When the newest steps ended, on the clock that all processes of a machine share."""
    now_ns: int = 0
    step_ns: int = 0
    """The median length of the newest steps; 0 before the second one."""
    recorded: int = 0
    """Steps of the open window so far."""
    is_joined: bool = False
    """Whether counting began while the job ran: ranks then count the same steps by different numbers."""
    counted_by: str = ""
    """What counts as a step: "optimizer", "program" or "Lightning"."""
    traces: list[str] = []
    notes: list[str] = []
    """What the recorder warned of in this window."""
    stack: list[str] = []
    number: int = 0


def as_json(record: msgspec.Struct) -> bytes:
    """JSON, with `?` for each byte of a path that is no UTF-8."""
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(record), ensure_ascii=False).encode("utf-8", "replace")


def encode(message: ControlRequest | ControlAnswer) -> bytes:
    """The bytes of a message; raises `ControlError` where they would be too many."""
    words = as_json(message)
    if len(words) > LIMIT_BYTES:
        raise ControlError(f"a message of {len(words):,} bytes; {LIMIT_BYTES:,} are the limit")
    return words


def decode_request(words: bytes) -> ControlRequest:
    """Raises `ControlError` for anything that is no request of this version."""
    return _decode(words, ControlRequest)


def decode_answer(words: bytes) -> ControlAnswer:
    """Raises `ControlError` for anything that is no answer of this version."""
    return _decode(words, ControlAnswer)


_Message = TypeVar("_Message", ControlRequest, ControlAnswer)


def _decode(words: bytes, kind: type[_Message]) -> _Message:
    if len(words) > LIMIT_BYTES:
        raise ControlError(f"a message of {len(words):,} bytes; {LIMIT_BYTES:,} are the limit")
    try:
        message = msgspec.json.decode(words, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ControlError(f"no message of DeepScope's: {error}") from None
    if message.version != VERSION:
        raise ControlError(
            f"a message of version {message.version}, where {VERSION} is spoken; "
            "use the same version of DeepScope on both sides"
        )
    return message


@dataclass
class Order:
    """What was asked for, and what has become of it."""

    id: str
    options: Mapping[str, Any]
    warmup: int = 1
    first: int = 0
    """The first step that is recorded."""
    first_number: int = 0
    steps: int | None = None
    end: int | None = None
    """The first step that is not recorded, once that holds."""
    proposed_end: int | None = None
    is_held: bool = False
    """Whether `first` holds."""
    is_dropped: bool = False
    is_at_once: bool = False
    recorder: Recorder | None = None
    thread: int = 0
    state: State = "asked"
    problem: str = ""
    recorded: int = 0
    traces: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_ending: bool = False

    @property
    def begin(self) -> int:
        return self.first - self.warmup

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is recorded any more."""
        return self.state in {"saving", "saved", "failed"}

    def plan(self) -> Plan | None:
        """The steps of its recorder; None for all of them. `end` may come to hold while it is followed."""
        if self.is_at_once:
            return None
        from deepscope.capture.schedule import Plan, Schedule, StepAction

        def action(step: int) -> StepAction:
            if step < self.warmup:
                return StepAction.WARM_UP
            number = self.first + step - self.warmup
            return StepAction.PASS if self.end is not None and number >= self.end else StepAction.RECORD

        numbers = None
        if self.steps is not None:
            numbers = {"skip_first": 0, "wait": 0, "warmup": self.warmup, "active": self.steps, "repeat": 1}
        return Plan(Schedule(action, is_sure=True, numbers=numbers))
