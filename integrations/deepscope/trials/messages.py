"""What a run is asked to do, and what it answers: files between this process and the one that runs the program."""

from __future__ import annotations

from pathlib import Path

import msgspec

from deepscope.trials.facts import ProgramFacts

STANDS_FOR = "DEEPSCOPE_TRIAL_SOURCE"
"""In the environment of a run: the folder that its scratch folder stands for."""

Settings = dict[str, int | float | str]
"""What a remedy sets: `{"num_workers": 2}`."""


class Change(msgspec.Struct, frozen=True):
    """A remedy with what it sets on this program."""

    remedy: str
    settings: Settings


class Request(msgspec.Struct, kw_only=True):
    """One run of a program."""

    target: str
    """The program's file, or with `is_module` its module."""
    arguments: list[str]
    is_module: bool
    answer: str
    """The file that the answer is written to."""
    folder: str
    """The run's scratch folder."""
    changes: list[Change] = []
    warmup: int
    """Steps that are made before any is timed."""
    steps: int
    """Steps after these; then the program is ended."""
    seconds: float | None = None
    """Timed steps end earlier after so long, but not before a few were made."""
    rounding: float = 0.0
    """After each step parameters are changed by this share of themselves, up or down at random; 0: not at all."""


class Answer(msgspec.Struct, kw_only=True):
    """What became of a run."""

    steps: int = 0
    """That the program made."""
    marks: list[tuple[int, int]] = []
    """Steps that were done, and the host's clock then in nanoseconds, the device being done with them."""
    losses: list[float] = []
    """The roots of all backward passes in order, NaN among them."""
    random_state: str = ""
    """A digest of torch's, NumPy's and Python's random numbers at the end."""
    samples: list[list[int]] = []
    """Of each loader in order a hash of each batch's indices, of its first iterator."""
    facts: ProgramFacts
    applied: list[str] = []
    """Names of the remedies that found what they change."""
    refused: dict[str, str] = {}
    """Names of remedies with the reason why they cannot be applied here."""
    written: list[str] = []
    """Files outside the scratch folder that Python opened for writing."""
    outside: list[str] = []
    """Modules of the program that were not imported from the scratch folder but from the folder that it stands for."""
    error: str = ""
    """How the program failed; "" where it did not."""


def encoded(message: Request | Answer) -> bytes:
    """As msgpack, which has NaN and infinity, too."""
    return msgspec.msgpack.encode(message)


def decoded_request(path: Path) -> Request:
    """The request in a file."""
    return msgspec.msgpack.decode(path.read_bytes(), type=Request)


def decoded_answer(path: Path) -> Answer | None:
    """The answer in a file; None where there is none, or half of one."""
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=Answer)
    except (OSError, msgspec.MsgspecError):
        return None
