"""JSON of events to typed records, under the names that any recorder gives their fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

Buffer = bytes | bytearray | memoryview

FAILURES = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises on text that is not of the expected shape."""

NOTHING = msgspec.Raw(b"")
"""In place of a text that is not there."""


class Args(msgspec.Struct, gc=False):
    """All arguments that are read, of any category; `Any` where a field's type differs from recorder to recorder."""

    correlation: Any = -1
    external_id: Any = msgspec.field(default=-1, name="External id")
    sequence: Any = msgspec.field(default=-1, name="Sequence number")
    fwd_thread: Any = msgspec.field(default=-1, name="Fwd thread id")
    device: Any = -1
    stream: Any = -1
    size_bytes: Any = msgspec.field(default=-1, name="bytes")
    call_stack: Any = msgspec.field(default=None, name="Call stack")
    shapes: msgspec.Raw = msgspec.field(default=NOTHING, name="Input Dims")
    dtypes: msgspec.Raw = msgspec.field(default=NOTHING, name="Input type")
    strides: msgspec.Raw = msgspec.field(default=NOTHING, name="Input Strides")
    concrete: msgspec.Raw = msgspec.field(default=NOTHING, name="Concrete Inputs")
    occupancy: Any = msgspec.field(default=-1, name="est. achieved occupancy %")
    grid: msgspec.Raw = NOTHING
    block: msgspec.Raw = NOTHING
    registers: Any = msgspec.field(default=-1, name="registers per thread")
    shared_memory: Any = msgspec.field(default=-1, name="shared memory")
    blocks_per_sm: Any = msgspec.field(default=-1, name="blocks per SM")
    graph_node: Any = msgspec.field(default=-1, name="graph node id")
    # What `torch.cuda._annotate_cuda_graph_trace` merges into the work of CUDA graphs: torchtitan names a region by
    # "module_fqn", `mark_kernels` by "name" (below), before torch 2.14 by "str".
    region: Any = msgspec.field(default=None, name="module_fqn")
    region_text: Any = msgspec.field(default=None, name="str")
    region_object: Any = msgspec.field(default=None, name="annotation")
    region_pass: Any = msgspec.field(default=None, name="autograd_phase")
    scope: Any = -1
    # Of collectives: kernels that are one, and the operators that announce them.
    collective: Any = msgspec.field(default=None, name="Collective name")
    in_elements: Any = msgspec.field(default=-1, name="In msg nelems")
    out_elements: Any = msgspec.field(default=-1, name="Out msg nelems")
    element_type: Any = msgspec.field(default=None, name="dtype")
    group: Any = msgspec.field(default=None, name="Process Group Name")
    group_description: Any = msgspec.field(default=None, name="Process Group Description")
    group_size: Any = msgspec.field(default=-1, name="Group size")
    group_ranks: msgspec.Raw = msgspec.field(default=NOTHING, name="Process Group Ranks")
    first_rank: Any = msgspec.field(default=-1, name="Global rank start")
    rank_stride: Any = msgspec.field(default=-1, name="Global rank stride")
    call_number: Any = msgspec.field(default=-1, name="Seq")
    source: Any = msgspec.field(default=-1, name="Src Rank")
    target: Any = msgspec.field(default=-1, name="Dst Rank")
    wait_stream: Any = msgspec.field(default=-1, name="wait_on_stream")
    wait_record: Any = msgspec.field(default=-1, name="wait_on_cuda_event_record_corr_id")
    # Older and other names of the same.
    old_external_id: Any = msgspec.field(default=-1, name="external id")
    old_shapes: msgspec.Raw = msgspec.field(default=NOTHING, name="Input dims")
    connection_id: Any = -1
    correlation_id: Any = -1
    npu_stream: Any = msgspec.field(default=-1, name="Stream Id")
    mtia_size: Any = msgspec.field(default=-1, name="size")
    # `[memory]` instants.
    address: Any = msgspec.field(default=-1, name="Addr")
    memory_bytes: Any = msgspec.field(default=0, name="Bytes")
    total_allocated: Any = msgspec.field(default=-1, name="Total Allocated")
    total_reserved: Any = msgspec.field(default=-1, name="Total Reserved")
    device_type: Any = msgspec.field(default=-1, name="Device Type")
    device_id: Any = msgspec.field(default=-1, name="Device Id")
    # Metadata events, and regions of CUDA graphs.
    name: Any = None


MEMORY_FIELDS = ("address", "memory_bytes", "total_allocated", "total_reserved", "device_type", "device_id")
"""Those of `[memory]` instants."""


class Heading(msgspec.Struct, gc=False):
    """What tells events apart."""

    ph: str = ""
    cat: str = ""
    name: str = ""


class Event(Heading, gc=False):
    """One event of any phase."""

    pid: int | float | str | None = None
    tid: int | float | str | None = None
    ts: int | float | str | None = None
    dur: int | float | str | None = None
    id: int | float | str | None = None
    args: Args | None = None


decode_headings: Callable[[Buffer], list[Any]] = msgspec.json.Decoder(list[Heading]).decode
"""The same array to headings, in a third of the time."""
decode_events = msgspec.json.Decoder(list[Event]).decode
"""An array of events to records. Raises `msgspec.DecodeError`, `UnicodeDecodeError` or `RecursionError`."""
