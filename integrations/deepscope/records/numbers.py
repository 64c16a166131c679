"""The numbers that are measured of anything that owns work."""

from __future__ import annotations

import msgspec

from deepscope.records.merging import Sum


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
