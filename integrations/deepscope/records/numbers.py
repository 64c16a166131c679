"""What is measured of anything that owns work, its cost by cause, and the peaks that verdicts rest on."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from deepscope.records.merging import First, FirstKnown, Sum, merged_by, table


class Numbers(msgspec.Struct, kw_only=True):
    """What is measured of a line, a function, a module or of the work that reached no line."""

    self_device_ns: Sum = 0
    total_device_ns: Sum = 0
    backward_device_ns: Sum = 0
    """Part of `self_device_ns`."""
    outside_ns: Sum = 0
    """Part of `self_device_ns`: of work that was launched outside the steps; 0 in a trace without steps."""
    total_outside_ns: Sum = 0
    """The same part of `total_device_ns`."""
    shared_ns: Sum = 0
    """Part of `self_device_ns`: of kernels that torch.compile fused from this and other lines."""
    self_cpu_ns: Sum = 0
    total_cpu_ns: Sum = 0
    python_ns: Sum = 0
    """Part of `self_cpu_ns` outside operators and calls of the device's runtime: the interpreter's own work, or its
    waiting. The next four sum to it."""
    python_cpu_ns: Sum = 0
    """On the CPU; all of it where the trace does not tell."""
    loader_wait_ns: Sum = 0
    """Waiting for data-loader workers."""
    blocked_ns: Sum = 0
    """Asleep, or waiting for something else than a device: a file, a network, a lock, another thread."""
    core_wait_ns: Sum = 0
    """Able to run, without a core of the machine: others had them."""
    python_outside_ns: Sum = 0
    """Part of `python_ns`: outside the steps; 0 in a trace without steps, and where a device works."""
    wait_ns: Sum = 0
    idle_ns: Sum = 0
    cost_ns: Sum = 0
    """What it costs the run: device time and the idle time it is blamed for; where the CPU is the device, operators'
    own time and the interpreter's. Summed up it is the time of the run, but for work that overlaps."""
    framework_ns: Sum = 0
    """The part of `cost_ns` that a training framework has on its own account, where the line calls its loop."""
    launches: Sum = 0
    calls: Sum = 0
    operators: Sum = 0
    bytes_allocated: Sum = 0
    bytes_freed: Sum = 0
    peak_bytes: Sum = 0
    """Bytes allocated here that were live at the peak of the device's memory. The next seven sum to it."""
    peak_parameters_bytes: Sum = 0
    """With the buffers of modules."""
    peak_gradients_bytes: Sum = 0
    peak_optimizer_bytes: Sum = 0
    """The optimizer's state."""
    peak_inputs_bytes: Sum = 0
    """Batches from loaders, and what modules were called with."""
    peak_activations_bytes: Sum = 0
    """What autograd kept for the backward pass."""
    peak_temporaries_bytes: Sum = 0
    """Gone before anybody looked who held it."""
    peak_unknown_bytes: Sum = 0
    """Held by something else: the program's own variables; all of it where the recording does not tell."""
    h2d_ns: Sum = 0
    h2d_bytes: Sum = 0
    d2h_ns: Sum = 0
    d2h_bytes: Sum = 0
    d2d_ns: Sum = 0
    d2d_bytes: Sum = 0
    collective_ns: Sum = 0
    collective_exposed_ns: Sum = 0
    flops: Sum = 0
    worker_ns: Sum = 0
    """Time in data-loader worker processes, waiting there included; in no other number."""
    worker_cpu_ns: Sum = 0
    """The part of `worker_ns` on the CPU; 0 in traces that do not know it."""
    recording_ns: Sum = 0
    """DeepScope's own cost on this line, already taken off the CPU times."""

    @property
    def self_in_steps_ns(self) -> int:
        """`self_device_ns` within the steps: what a time a step is the mean of; all of it without steps."""
        return self.self_device_ns - self.outside_ns

    @property
    def total_in_steps_ns(self) -> int:
        """The same of `total_device_ns`."""
        return self.total_device_ns - self.total_outside_ns


Verdict = Literal[
    "",
    "compute-bound",
    "memory-bound",
    "launch-bound",
    "host-bound",
    "waiting",
    "data",
    "waiting for a core",
    "slowed by recording",
    "communication",
    "mixed",
]
"""What holds a line back; "" where the trace does not tell (docs/numbers.md)."""


class Rate(msgspec.Struct, array_like=True):
    """Work of one type of floats and one intensity, whose operations and bytes are known."""

    dtype: First[str]
    """`float32`, `tf32`, `bfloat16`, `float16`, `float8`, `float64`; "" for what counts no operations."""
    intensity: First[int]
    """Operations a byte, as the power of two below; 0 for what counts no operations."""
    device_ns: Sum
    flops: Sum
    moved_bytes: Sum
    """The least: each input read once, each result written once."""


class Why(msgspec.Struct, kw_only=True):
    """A cost (`cost_ns` of a line) divided among its causes: the times but `occupied_ns` and `delay_ns` sum to it."""

    rates: Annotated[list[Rate], merged_by(table("dtype", "intensity"))] = []
    """Work that a roof tells of: its operations and bytes are known."""
    short_ns: Sum = 0
    """In kernels too short to fill the device; where the CPU is the device, in operators that are all dispatch."""
    communication_ns: Sum = 0
    """In collectives that no other kernel hides."""
    copies_ns: Sum = 0
    """In copies between host and device that no kernel hides."""
    hidden_ns: Sum = 0
    """In collectives and copies that other kernels hide: it holds nothing back."""
    unknown_ns: Sum = 0
    """In other work: its bytes are not known."""
    waiting_ns: Sum = 0
    """The device idle while the CPU waited for it; where the CPU is the device, Python blocked."""
    data_ns: Sum = 0
    """The device idle while data was loaded or copied to it; where the CPU is the device, waiting for the loader."""
    core_wait_ns: Sum = 0
    """Where the CPU is the device: Python able to run, without a core."""
    launch_ns: Sum = 0
    """The device idle while operators and the runtime launched work."""
    host_ns: Sum = 0
    """The device idle while the CPU did anything else; where the CPU is the device, Python running."""
    kernels: Sum = 0
    """Pieces of device work whose launch is known; of them are the next two."""
    delay_ns: Sum = 0
    """From the start of the launching call to the start on the device."""
    queued: Sum = 0
    """Work of the same device that was launched before, and not finished, at the launch."""
    occupied_ns: Sum = 0
    """Time in kernels times the estimated share of the warps that the device can hold."""
    occupancy_known_ns: Sum = 0
    """Time in kernels of which that share is known."""


class Peaks(msgspec.Struct, kw_only=True):
    """The best that a device can do: operations a second by type of floats, and bytes a second."""

    name: First[str]
    flops_per_s: FirstKnown[dict[str, float]]
    memory_bytes_per_s: First[float]
    source: First[str]
    """Where that is stated; "given" for what a user gave."""
