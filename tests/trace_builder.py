"""Small traces built by hand: operators, scopes, launches, kernels, flows, memory.

The JSON is what Kineto could have written. Times are given in nanoseconds and written in microseconds with three
decimals.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

__all__ = ["TraceBuilder"]

PROCESS = 100
MAIN = 101
BACKWARD = 102


class TraceBuilder:
    """Each method adds one event (or one pair) and returns the builder, but for those that say otherwise."""

    def __init__(self, **metadata: Any) -> None:
        self.metadata: dict[str, Any] = {"schemaVersion": 1, **metadata}
        self.events: list[dict[str, Any]] = []
        self.scopes: list[list[Any]] = []
        self.files: list[dict[str, Any]] = []
        self._external = 0
        self._correlation = 0
        self._flow = 0

    def event(self, category: str, name: str, start: int, duration: int, *, pid: Any = PROCESS, tid: Any = MAIN,
              **args: Any) -> TraceBuilder:  # fmt: skip
        """Any complete event; `args` as they are."""
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid,
                            "ts": _us(start), "dur": _us(duration), **({"args": args} if args else {})})  # fmt: skip
        return self

    def op(self, name: str, start: int, duration: int, *, tid: Any = MAIN, sequence: int | None = None,
           fwd_thread: int = 0, stack: str | None = None,
           dims: list[Any] | None = None, **args: Any) -> TraceBuilder:  # fmt: skip
        """An operator; a backward one has `fwd_thread` > 0."""
        self._external += 1
        more: dict[str, Any] = {"External id": self._external, **args}
        if sequence is not None:
            more |= {"Sequence number": sequence, "Fwd thread id": fwd_thread}
        if stack is not None:
            more["Call stack"] = stack
        if dims is not None:
            more["Input Dims"] = dims
        return self.event("cpu_op", name, start, duration, tid=tid, **more)

    def backward(self, node: str, start: int, duration: int, sequence: int, *, tid: Any = BACKWARD,
                 fwd_thread: int = 1) -> TraceBuilder:  # fmt: skip
        """The engine's span and the node in it (`MmBackward0`), which starts and ends a nanosecond inside."""
        self.op(f"autograd::engine::evaluate_function: {node}", start, duration, tid=tid, sequence=sequence,
                fwd_thread=fwd_thread)  # fmt: skip
        return self.op(node, start + 1, max(duration - 2, 0), tid=tid, sequence=sequence, fwd_thread=fwd_thread)

    def annotation(self, name: str, start: int, duration: int, *, tid: Any = MAIN) -> TraceBuilder:
        return self.event("user_annotation", name, start, duration, tid=tid)

    def step(self, number: int, start: int, duration: int, *, tid: Any = MAIN) -> TraceBuilder:
        return self.annotation(f"ProfilerStep#{number}", start, duration, tid=tid)

    def frame(self, name: str, start: int, duration: int, *, tid: Any = MAIN, **args: Any) -> TraceBuilder:
        """A frame of torch's own stacks, `path(12): function`."""
        return self.event("python_function", name, start, duration, tid=tid, **args)

    def line(self, file: str, line: int, function: str, start: int, duration: int, *, tid: Any = MAIN,
             first_line: int = 1, library: bool = False) -> TraceBuilder:  # fmt: skip
        """One run of a user line, or of a library's; its scope is entered in the `deepscope` table."""
        scope = self._scope([0, self._file(file), line, function, first_line, "", "", *([True] if library else [])])
        return self.event("python_line", f"{file}({line}): {function}", start, duration, tid=tid, scope=scope)

    def module(self, name: str, path: str, start: int, duration: int, *, tid: Any = MAIN, file: str = "",
               line: int = 0, python_module: str = "") -> TraceBuilder:  # fmt: skip
        """One call of an `nn.Module`."""
        number = self._file(file) if file else -1
        scope = self._scope([1, number, line, name, line, path, python_module])
        return self.event("python_module", f"nn.Module: {name}", start, duration, tid=tid, scope=scope)

    def runtime(self, name: str, start: int, duration: int, *, tid: Any = MAIN, correlation: int | None = None,
                **args: Any) -> TraceBuilder:  # fmt: skip
        """A runtime call that launches nothing, such as `cudaStreamSynchronize`."""
        if correlation is None:
            self._correlation += 1
            correlation = self._correlation
        return self.event("cuda_runtime", name, start, duration, tid=tid, correlation=correlation, **args)

    def kernel(self, name: str, launch: int, start: int, duration: int, *, launch_duration: int = 1, tid: Any = MAIN,
               device: int = 0, stream: int = 7, call: str | None = None, category: str = "kernel",
               **args: Any) -> TraceBuilder:  # fmt: skip
        """Device work from `start`, and the call at `launch` on the CPU that launched it."""
        calls = {"gpu_memcpy": "cudaMemcpyAsync", "gpu_memset": "cudaMemsetAsync"}
        self.runtime(call or calls.get(category, "cudaLaunchKernel"), launch, launch_duration, tid=tid)
        return self.orphan(name, start, duration, device=device, stream=stream, category=category,
                           correlation=self._correlation, **args)  # fmt: skip

    def memcpy(self, direction: str, size: int, launch: int, start: int, duration: int, **args: Any) -> TraceBuilder:
        """A copy; `direction` is `HtoD`, `DtoH` or `DtoD`."""
        ends = {"H": "Pageable", "D": "Device"}
        name = f"Memcpy {direction} ({ends[direction[0]]} -> {ends[direction[-1]]})"
        return self.kernel(name, launch, start, duration, category="gpu_memcpy", bytes=size, **args)

    def orphan(self, name: str, start: int, duration: int, *, device: int = 0, stream: int = 7, correlation: int,
               category: str = "kernel", **args: Any) -> TraceBuilder:  # fmt: skip
        """Device work without a launch of its own: a replayed graph's, or one launched outside the file."""
        return self.event(category, name, start, duration, pid=device, tid=stream, device=device, stream=stream,
                          correlation=correlation, **args)  # fmt: skip

    def flow(self, forward: int, backward: int, *, tid: Any = MAIN, backward_tid: Any = BACKWARD) -> TraceBuilder:
        """The `fwdbwd` arrow from the start of a forward operator to that of a backward one."""
        self._flow += 1
        common = {"cat": "fwdbwd", "name": "fwdbwd", "id": self._flow, "pid": PROCESS}
        self.events.append({"ph": "s", "tid": tid, "ts": _us(forward), **common})
        self.events.append({"ph": "f", "tid": backward_tid, "ts": _us(backward), "bp": "e", **common})
        return self

    def memory(self, at: int, size: int, *, address: int = 0x7F0000000000, device_type: int = 1, device: int = 0,
               total: int | None = None, tid: Any = MAIN) -> TraceBuilder:  # fmt: skip
        """An allocation (or, with a negative size, a release)."""
        args: dict[str, Any] = {"Device Type": device_type, "Device Id": device, "Addr": address, "Bytes": size}
        if total is not None:
            args["Total Allocated"] = total
        self.events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": PROCESS,
                            "tid": tid, "ts": _us(at), "args": args})  # fmt: skip
        return self

    def counter(self, name: str, at: int, **values: float) -> TraceBuilder:
        self.events.append({"ph": "C", "name": name, "pid": PROCESS, "tid": 0, "ts": _us(at), "args": values})
        return self

    def name_process(self, pid: Any, name: str) -> TraceBuilder:
        self.events.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}})
        return self

    def name_thread(self, pid: Any, tid: Any, name: str) -> TraceBuilder:
        self.events.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}})
        return self

    def document(self) -> dict[str, Any]:
        """The whole as JSON would have it."""
        metadata = dict(self.metadata)
        if self.scopes:
            own = {"format": 2, "files": self.files, "scopes": self.scopes}
            given = metadata.get("deepscope", {})
            metadata["deepscope"] = given | own | given  # in the order of real files, short values first
        return {**metadata, "traceEvents": self.events, "traceName": "built.json"}

    def dumps(self, **options: Any) -> bytes:
        """The file's bytes; `options` go to `json.dumps`."""
        return json.dumps(self.document(), **options).encode()

    def write(self, path: Path) -> Path:
        """Write to a file, gzip-compressed where the name ends in `.gz`; returns the path."""
        data = self.dumps()
        path.write_bytes(gzip.compress(data, 1) if path.name.endswith(".gz") else data)
        return path

    def _file(self, path: str) -> int:
        for number, file in enumerate(self.files):
            if file["path"] == path:
                return number
        self.files.append({"path": path})
        return len(self.files) - 1

    def _scope(self, row: list[Any]) -> int:
        if row not in self.scopes:
            self.scopes.append(row)
        return self.scopes.index(row)


def _us(ns: int) -> float | int:
    return ns // 1000 if ns % 1000 == 0 else float(f"{ns // 1000}.{ns % 1000:03d}")
