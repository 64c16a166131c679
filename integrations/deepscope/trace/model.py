"""A trace in memory: columns of NumPy arrays, one row an event, times in integer nanoseconds.

Strings stand once in `Trace.strings` and are named by index, -1 for "none". All lines are 1-based.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from deepscope.trace.arrays import distinct_places
from deepscope.trace.format.header import Header
from deepscope.trace.kinds import Kind

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]

QUEUE_OFFSET = 1 << 61
"""Added to the `correlation_id` of torch_npu's enqueue and dequeue: CANN's connections, which stand in the same column,
are numbered apart from them."""


@dataclass(frozen=True, slots=True)
class Thread:
    """Where events stand: `pid` and `tid` as the file has them (words too), with the names that metadata gives."""

    pid: int | str
    tid: int | str
    process_name: str = ""
    name: str = ""
    is_device: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """What a `python_line` or `python_module` event stands for.

    `file` is absolute as recorded ("" for a module scope whose class has no file); `line` the executing line (for a
    module scope the first line of `forward`); `name` the function's qualified name, or `Class` of the module.
    """

    file: str
    line: int
    name: str
    first_line: int = 0
    path: str = ""
    """Module scopes: the module's dotted path in its root (`encoder.layers.3.linear1`)."""
    python_module: str = ""
    """Module scopes: the Python module that defines the class (`torch.nn.modules.linear`)."""
    lowered: str = ""
    """Line scopes: what the line stands for where detail was lowered, `loop` or `function`; "" for itself."""
    library: bool = False
    """Line scopes: whether the line is an installed package's, which owns nothing."""
    own_parameters: int = 0
    """Module scopes: elements of the module's own parameters; 0 where the trace does not tell."""
    parameters: int = 0
    """The same with those of the modules in it."""


@dataclass(frozen=True, slots=True)
class Events:
    """Complete events (`ph: X`), in file order; every array has shape (n,)."""

    start_ns: Int64
    duration_ns: Int64
    kind: npt.NDArray[np.uint8]
    name: Int32
    """Index into `Trace.strings`."""
    category: Int32
    """Index into `Trace.strings`: the category as written."""
    thread: Int32
    """Index into `Trace.threads`."""
    correlation: Int64
    """Joins device work to the runtime call that launched it; -1 none."""
    external_id: Int64
    sequence: Int64
    """Autograd's sequence number; -1 none."""
    fwd_thread: Int64
    """`Fwd thread id`; -1 none (0 on forward operators)."""
    device: Int32
    """Device index of device work; -1 none."""
    stream: Int64
    """Stream of device work (a hash where the file has words); -1 none."""
    call_stack: Int32
    """Index into `Trace.strings`: `path(line): function;…`, innermost first; -1 none."""
    size_bytes: Int64
    """Bytes of a copy or fill; -1 none."""
    shapes: Int32
    """Index into `Trace.strings`: the JSON text of `Input Dims`; -1 none."""
    dtypes: Int32
    """Index into `Trace.strings`: the JSON text of `Input type`, of operators that may move data; -1 none."""
    strides: Int32
    """The same of `Input Strides`, which torch writes from 2.2 on."""
    occupancy: npt.NDArray[np.int16]
    """Percent of a kernel's warps that its multiprocessors can hold, as estimated by Kineto; -1 none."""
    grid: Int32
    """Index into `Trace.strings`: the JSON text of a kernel's grid, `[64, 1, 1]`; -1 none. So is the next one."""
    block: Int32
    registers: Int32
    """Of a kernel, a thread; -1 none."""
    shared_memory: Int64
    """Bytes of a kernel's block; -1 none."""
    blocks_per_sm: npt.NDArray[np.float32]
    """A kernel's blocks by the multiprocessors of its device; -1 none."""
    concrete: Int32
    """Index into `Trace.strings`: the JSON text of `Concrete Inputs` (numbers, flags and lists as words) of
    `names.WITH_NUMBERS`; -1 none, and for other operators, whose shapes say enough."""
    wait_stream: Int64
    """Of a `cuda_sync` span that waits for an event, the stream that the event was recorded on; -1 none."""
    wait_record: Int64
    """The `correlation` of the call that recorded that event; -1 none."""
    graph_node: Int64
    """Of a CUDA graph's work, the id of its node: the executable graph's number in the upper 32 bits, the node's in the
    lower ones; 0 or -1 for other work."""
    region: Int32
    """Of a CUDA graph's work, an index into `Trace.strings`: the name that an annotation gave it; -1 none."""
    region_pass: Int32
    """The same: `backward` for what an annotated region did in its backward pass."""
    scope: Int32
    """Index into `Trace.scopes` for LINE_SCOPE and MODULE_SCOPE; -1 for others."""

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def end_ns(self) -> Int64:
        """Ends, exclusive; shape (n,)."""
        return self.start_ns + self.duration_ns


@dataclass(frozen=True, slots=True)
class Flows:
    """Flow events (`ph: s` and `f`) of the categories `fwdbwd` and its older names; arrays of shape (n,)."""

    id: Int64
    is_start: npt.NDArray[np.bool_]
    ts_ns: Int64
    thread: Int32


@dataclass(frozen=True, slots=True)
class MemoryEvents:
    """`[memory]` instants: one allocation (`size_bytes` > 0) or release (< 0) each; arrays of shape (n,)."""

    ts_ns: Int64
    thread: Int32
    address: Int64
    size_bytes: Int64
    total_allocated_bytes: Int64
    """-1 where the file does not say."""
    total_reserved_bytes: Int64
    """What the allocator holds of the device, free blocks included; -1 where the file does not say."""
    device_type: Int32
    """torch's DeviceType: 0 CPU, 1 CUDA (HIP too), 12 XPU, …"""
    device_id: Int32


@dataclass(frozen=True, slots=True)
class Messages:
    """What some events tell of the collectives that they are or announce; arrays of shape (m,), -1 for what is absent.

    Texts are indexes into `Trace.strings`.
    """

    event: Int64
    """Indexes of the events, ascending."""
    collective: Int64
    """Its name, as torch has it: `allreduce`."""
    in_elements: Int64
    out_elements: Int64
    element_type: Int64
    """`Float`, `BFloat16`, …"""
    group: Int64
    """The process group's name, and what its maker says that it is for."""
    group_description: Int64
    group_size: Int64
    group_ranks: Int64
    """The JSON text of its ranks; torch leaves out the middle of more than thirty."""
    first_rank: Int64
    """The first of them, and by how much each is larger than the one before, if that is the same for all."""
    rank_stride: Int64
    call_number: Int64
    """torch's number of the call in its process group, from 1 on; point-to-point calls are numbered apart."""
    source: Int64
    """Of a point-to-point message the rank, as numbered in the whole run, that it comes from; or, in `target`, goes to.
    The other one is the rank of the trace."""
    target: Int64

    @classmethod
    def none(cls) -> Messages:
        """No messages."""
        return cls(*(np.zeros(0, np.int64) for _ in fields(cls)))


@dataclass(frozen=True, slots=True)
class CounterEvents:
    """Counter samples (`ph: C`), one row a series value; arrays of shape (n,)."""

    ts_ns: Int64
    name: Int32
    series: Int32
    value: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace file: one process, one rank, one window."""

    path: str
    strings: list[str]
    threads: list[Thread]
    events: Events
    flows: Flows
    memory: MemoryEvents
    counters: CounterEvents
    scopes: list[Scope] = field(default_factory=list)
    messages: Messages = field(default_factory=Messages.none)
    metadata: dict[str, Any] = field(default_factory=dict)
    """Top-level keys of the file other than the events and the header: `deviceProperties`, `distributedInfo`, …"""
    header: Header = field(default_factory=Header)
    """What DeepScope's recorder says of it; empty for a trace of others."""
    base_ns: int = 0
    """`baseTimeNanoseconds`: add it to a time to get nanoseconds since the epoch."""
    truncated: bool = False
    """The file ended early and what was whole has been read."""
    left_out: int = 0
    """How many events of the file are not here because their times or sizes cannot be true."""

    @property
    def unix_base_ns(self) -> int:
        """Add it to a time to get nanoseconds since the epoch by the host's clock, which its processes share.

        Of a trace that DeepScope did not record this is `base_ns`: torch's own conversion.
        """
        clock = self.header.clock
        return self.base_ns + (clock.offset_ns if clock is not None else 0)

    @property
    def has_line_scopes(self) -> bool:
        """Whether lines in this trace are exact."""
        return bool(self.user_lines.any())

    @property
    def user_lines(self) -> npt.NDArray[np.bool_]:
        """Which events are runs of lines of the user's, as recorded by DeepScope; shape (n,)."""
        return np.asarray((self.events.kind == Kind.LINE_SCOPE) & ~self._of_library()[self.events.scope])

    @property
    def library_lines(self) -> npt.NDArray[np.bool_]:
        """Which events are runs of lines of installed packages, as recorded by DeepScope; shape (n,)."""
        return np.asarray((self.events.kind == Kind.LINE_SCOPE) & self._of_library()[self.events.scope])

    def named(self, rows: Int64, is_wanted: Callable[[str], bool]) -> npt.NDArray[np.bool_]:
        """Which of these events have names that are wanted; each distinct name is looked at once. Shape of `rows`."""
        names, place = distinct_places(self.events.name[rows])
        return np.array([is_wanted(self.strings[name]) for name in names.tolist()], np.bool_)[place]

    def _of_library(self) -> npt.NDArray[np.bool_]:
        """By scope; the last place is for events without one."""
        return np.array([scope.library for scope in self.scopes] + [False])
