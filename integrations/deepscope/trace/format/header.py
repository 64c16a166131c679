"""The `deepscope` object of a trace (docs/trace-format.md), in one shape for who writes it and who reads it.

A trace is input from strangers: `read_header` keeps what is well formed and leaves the rest at its default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any

import msgspec

from deepscope.trace.format.audit import AuditAccount
from deepscope.trace.format.configuration import Configuration
from deepscope.trace.format.counters import CounterAccount
from deepscope.trace.format.process_tables import CompiledCode, MemoryAccount, ProcessSettings
from deepscope.trace.format.tolerant import Count, LineNumber, Moment, salvaged, with_depth

FORMAT = 2
NO_ARGUMENTS = "1271cf25"
"""The digest of a program's arguments where it has none."""

LOWERED_TO_LOOP, LOWERED_TO_FUNCTION, LOWERED_TO_CALLER = "loop", "function", "caller"
"""What stands for a line where detail was lowered: the loop that it begins, its function, the line that called it."""


def own_version() -> str:
    """DeepScope's version; "" where it runs from its sources, or was lent to a running program (`deepscope attach`)."""
    from importlib.metadata import PackageNotFoundError, version  # slow, and readers of traces do not ask

    try:
        return version("deepscope")
    except PackageNotFoundError:
        return ""


class Device(msgspec.Struct, frozen=True):
    """The devices in use."""

    type: str = ""
    """`cuda` (ROCm, too), `xpu`, `mps`, …; `cpu` where there is none."""
    name: str = ""
    count: Count = 0


class Git(msgspec.Struct, frozen=True):
    """The commit that the project stood at."""

    commit: str
    dirty: bool = False
    """Whether files differed from it."""


class File(msgspec.Struct, omit_defaults=True):
    """A file that scopes name."""

    path: str
    """Absolute as recorded."""
    sha256: str = ""
    """Of the text in UTF-8; "" with `source="none"`, and for files that are not the user's."""
    text: str | None = None
    """With `source="text"` alone."""


class ScopeRow(msgspec.Struct, array_like=True, frozen=True):
    """What the events `args.scope = N` stand for: row N of the table of scopes."""

    kind: Annotated[int, msgspec.Meta(ge=0, le=1)]
    """0 a line, 1 a module."""
    file: int
    """Index into `Header.files`; -1 for none."""
    line: LineNumber
    name: str
    """A line's function, by its qualified name; a module's class."""
    first_line: int = 0
    """Of a line's function."""
    path: str = ""
    """Of a module, dotted, in its root."""
    python_module: str = ""
    """Where a module's class is defined."""
    library: bool = False
    """Of a line: whether it is an installed package's."""


class ModuleParameters(msgspec.Struct, array_like=True, frozen=True):
    """How many elements the parameters of a module have."""

    scope: Count
    """Row of `Header.scopes`."""
    own: Count = 0
    """Of the module's own parameters."""
    total: Count = 0
    """With those of the modules in it, each parameter once."""


class LineAccount(msgspec.Struct):
    """The recorder's own account of the lines of a window."""

    backend: str | None = None
    """`monitoring` or `settrace`; None where no lines were recorded."""
    entries: Count = 0
    cost_ns: float = 0.0
    """Calibrated nanoseconds an entry."""
    operator_ns: float = 0.0
    """What torch's recording of an operator takes."""
    total_ns: Count = 0
    """What all of it cost: entries without a scope, calls of functions and the making of scopes, too."""
    calls: Count = 0
    """Of functions of user code, and of libraries whose lines are recorded."""
    left_alone: Count = 0
    """How often a hook was called for code without scopes (`settrace` alone)."""
    slowdown: float = 1.0
    """How much longer Python's instructions took while lines were recorded."""
    on_core: float = 1.0
    """The thread's time on a core as a part of the time in which it could run."""
    budget: Count = 0
    """How many scopes a line may have if it never holds an operator."""
    over_budget: list[tuple[Count, Count]] = []
    """Number of a scope, and its entries that were not recorded."""
    lowered: list[tuple[Count, str]] = []
    """Number of a scope, and what stands for it: `loop`, `function` or `caller`."""
    modules_only: bool = False
    """From some time on no line was recorded at all."""
    libraries: list[str] = []
    """The installed packages whose lines are recorded beside the user's."""
    library_entries: Count = 0
    """The part of `entries` that are runs of their lines."""
    libraries_ended: bool = False
    """From some time on none of their lines was recorded any more."""
    underway: list[Count] = []
    """Numbers of the scopes of lines that ran already as the window opened, outermost first."""
    threads: Count = 0
    """On which user code was recorded."""
    unrecorded_threads: Count = 0
    """On which it ran unrecorded."""
    warnings: list[str] = []


class Clock(msgspec.Struct, frozen=True):
    """How a trace's times stand to the host's clock, which all processes of the host share."""

    offset_ns: Moment = 0
    """Add it and `baseTimeNanoseconds` to a time to get Unix time by the host's clock, in nanoseconds."""
    error_ns: Count = 0
    """The offset is no further off than this."""
    unix_ns: Moment = 0
    """The host's clock when it was compared: as the window began."""


class Spread(msgspec.Struct, frozen=True):
    """Durations of several steps."""

    mean_ns: Count = 0
    quartiles_ns: tuple[Count, Count, Count] = (0, 0, 0)
    """The middle one is the median."""


class UnrecordedStepTimes(msgspec.Struct, frozen=True):
    """How long steps took on the thread that makes them; the first one of the run is left out."""

    steps: Count = 0
    wall: Spread = Spread()
    cpu: Spread = Spread()
    """The thread's own CPU time."""


Ratio = Annotated[float, msgspec.Meta(ge=0, le=1)]


class MachineUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """What else used the machine while the window was recorded; None and 0 for what the system does not tell."""

    cores: Count = 0
    quota_cores: float = 0.0
    """Of the container; 0 for no quota."""
    allowed_cores: Count = 0
    """That the process may run on; 0 where that is not known."""
    own_cores: float = 0.0
    """In use by this process, on average."""
    others_cores: float | None = None
    """In use by other processes, on average: data-loader workers and other ranks, too."""
    core_wait_ratio: Ratio | None = None
    """Of the time in which this process's threads could run, the part in which they had no core."""
    stolen_ratio: Ratio | None = None
    """Of the machine's time on cores, the part that its host gave to others."""
    throttled_ratio: Ratio | None = None
    """Of the periods of the container's quota, those in which it was used up."""


class WorkerLine(msgspec.Struct, array_like=True, frozen=True):
    """What one data-loader worker spent on one line in the window."""

    file: Count
    """Index into `Header.files`."""
    line: Annotated[int, msgspec.Meta(ge=1, lt=2**31)]
    function: str
    self_ns: Count
    calls: Count = 0
    cpu_ns: Count = 0
    """The part of `self_ns` on the CPU."""


class Worker(msgspec.Struct):
    """A data loader's worker process."""

    pid: int = 0
    worker_id: int = 0
    num_workers: Count = 0
    """How many its loader has; 0 where not known."""
    lines: list[WorkerLine] = []
    wall_ns: Count = 0


class CallStackAccount(msgspec.Struct, frozen=True):
    """What became of the operators' `Call stack`s."""

    operators: Count = 0
    written: Count = 0
    depth: Count = 0
    """Frames that a stack may have."""
    cut: Count = 0
    """Stacks that had more."""


class Header(msgspec.Struct, kw_only=True):
    """Where, when and of what a trace was recorded; short values stand first, so that a glance at a file finds them."""

    format: Count = 0
    """0 for a trace that DeepScope did not record."""
    version: str = ""
    """DeepScope's."""
    run_id: str = ""
    """The same word in every trace that one process group wrote in one run."""
    stage: str = ""
    """`fit`, `validate`, `test`, `predict`, `sanity_check`; "" outside Lightning."""
    window: Count | None = None
    """Number of the window in its stage."""
    rank: Count | None = None
    world_size: Count | None = None
    complete: bool = True
    """False when an exception, Ctrl-C or running out of memory ended the window early."""
    program: str = ""
    """The script as seen from `project_root`, the module of `python -m`, or `notebook`; never its arguments."""
    arguments: str = ""
    """A digest of the program's arguments, which tells runs of it apart; "" where unknown."""
    recorded_at: str = ""
    """ISO 8601 with offset."""
    hostname: str = ""
    pid: Count = 0
    all_threads: bool | None = None
    """Whether torch recorded all threads or only the training thread and autograd's; None where torch cannot tell."""
    device: Device = Device()
    versions: dict[str, str] = {}
    """Of `python`, `torch` and `lightning`."""
    configuration: Configuration | None = None
    settings: ProcessSettings | None = None
    schedule: dict[str, Count] | None = None
    """The schedule's numbers as used, where a short run shortened it; None for a function of the user's."""
    recorder_ns: dict[str, Count] = {}
    """What `prepare`, `start`, `stop` and `export` of the window cost the thread that recorded."""
    recorded_steps: UnrecordedStepTimes | None = None
    """Of the windows so far; None where the window has no steps."""
    plain_steps: UnrecordedStepTimes | None = None
    """Outside windows and warm-ups, before this window or after it; None where fewer than five are known."""
    machine: MachineUse | None = None
    clock: Clock | None = None
    """None where it was not compared with the host's."""
    phases: dict[str, str] = {}
    """Names of the annotations that mark phases, and the phases."""
    metadata: dict[str, Any] = {}
    """What the user gave to `add_metadata`."""
    project_root: str = ""
    git: Git | None = None
    call_stacks: CallStackAccount = CallStackAccount()
    lines: LineAccount = msgspec.field(default_factory=LineAccount)
    memory: MemoryAccount | None = None
    """With `profile_memory` alone."""
    counters: CounterAccount | None = None
    """None where none were sampled."""
    files: list[File | None] = []
    scopes: list[ScopeRow | None] = []
    parameters: list[ModuleParameters] = []
    """Of the modules that still lived at the window's end, the first 20,000."""
    workers: list[Worker] = []
    compiled: CompiledCode = msgspec.field(default_factory=CompiledCode)
    audit: AuditAccount | None = None
    """Of the steps behind the window; None where nothing was to be looked at."""
    notes: list[str] = []
    """What could not be found out for this header, and why."""

    @property
    def source(self) -> str:
        """What of the user's files is in the trace: `text`, `hash` or `none`."""
        return self.configuration.source if self.configuration is not None else "none"

    def texts(self) -> Iterator[File]:
        """The files that are well formed."""
        return (file for file in self.files if file is not None)

    def path_of(self, file: int) -> str:
        """The path of a file by its number; "" for one that is not there."""
        found = self.files[file] if 0 <= file < len(self.files) else None
        return found.path if found is not None else ""


# msgspec makes a structure's table of types at its first use, and a second thread that comes meanwhile reads what is
# not written yet, and dies. Heads of remote traces are read by many threads.
msgspec.json.Decoder(Header)


def read_header(value: object) -> Header:
    """The header as far as it is well formed; an empty one for a trace that has none.

    A file or scope that is not as the format says becomes None, so that the numbers of the others stay right; any other
    row of a list is left out.
    """
    if not isinstance(value, dict):
        return Header()
    header: Header = salvaged(value, Header)
    header.format = header.format or 1
    return header


_START = re.compile(rb'"deepscope"\s*:\s*\{')
_SHORT_VALUES = re.compile(rb'(?:\s*"[^"\\]*"\s*:\s*(?:"(?:[^"\\]|\\.)*"|[-+.\w]+)\s*(?:,|(?=\})))*')
_LONG_VALUE = re.compile(rb'\s*"[^"\\]*"\s*:\s*(?=[\[{])')


def glance(head: bytes) -> Header:
    """What the first bytes of a trace's text tell of its header: the values that are no objects and no arrays."""
    start = _START.search(head)
    text = b",".join(_short_values(head, start.end())) if start is not None else b""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        found: Header = salvaged(msgspec.json.decode(b"{%s}" % text), Header)
        return found
    return Header()


def _short_values(head: bytes, at: int) -> Iterator[bytes]:
    """The texts of an object's short values, one for each run between long ones; the first key is at `at`."""
    while (values := _SHORT_VALUES.match(head, at)) is not None:
        if text := values[0].strip().removesuffix(b","):
            yield text
        value = _LONG_VALUE.match(head, values.end())
        if value is None:
            return
        at = _behind_brackets(head, value.end())


def _behind_brackets(head: bytes, at: int) -> int:
    """The place behind the array or object at `at`, and behind its comma; the end if it is cut off."""
    for token, depth in with_depth(head, at):
        if depth == 0:
            return token.end() + head[token.end() : token.end() + 1].count(b",")
    return len(head)
