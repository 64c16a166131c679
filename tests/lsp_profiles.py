"""Profiles and traces with known answers for tests of the server: a training step on a device."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from deepscope.records import (
    CallNode,
    Function,
    Line,
    Numbers,
    Part,
    PartKey,
    Profile,
    Resolved,
    SourceFile,
    Top,
    Totals,
    TraceInfo,
)
from trace_builder import BACKWARD, TraceBuilder

__all__ = ["LIBRARY", "NET", "SOURCE", "make_opened_profile", "make_profile", "record"]

SOURCE = """import torch


class Net:
    def forward(self, x):
        y = self.proj(x)
        return y.relu()


def train(net, x):
    loss = net.forward(x)
    loss.backward()
"""
NET = {"project": 6, "relu": 7, "call": 11, "backward": 12}
"""Where what happens in `SOURCE`."""
LIBRARY = "/env/lib/python3.12/site-packages/pack/layers.py"


def make_profile(file: str, *, text: str | None = SOURCE, root: str = "", **info: Any) -> Profile:
    """100 ms of device time: 60 in the projection (10 of them backward), 30 in relu, 10 without a line."""
    ms = 10**6
    lines = [
        Line(
            file=file,
            line=NET["project"],
            function="Net.forward",
            exact=True,
            self_device_ns=60 * ms,
            cost_ns=60 * ms,
            total_device_ns=60 * ms,
            backward_device_ns=10 * ms,
            self_cpu_ns=5 * ms,
            total_cpu_ns=5 * ms,
            launches=6,
            calls=2,
            bytes_allocated=4 << 20,
            flops=6 * 10**12,
            top_kernels=[Top("sgemm", 60 * ms, 6)],
            top_operators=[Top("aten::mm", 60 * ms, 2)],
        ),
        Line(
            file=file,
            line=NET["relu"],
            function="Net.forward",
            exact=True,
            self_device_ns=30 * ms,
            cost_ns=30 * ms,
            total_device_ns=30 * ms,
            self_cpu_ns=2 * ms,
            total_cpu_ns=2 * ms,
            launches=2,
            calls=2,
        ),
        Line(
            file=file,
            line=NET["call"],
            function="train",
            exact=True,
            total_device_ns=90 * ms,
            self_cpu_ns=1 * ms,
            total_cpu_ns=8 * ms,
            calls=2,
        ),
        Line(
            file=file, line=NET["backward"], function="train", exact=True, self_cpu_ns=3 * ms, wait_ns=20 * ms, calls=2
        ),
    ]
    return Profile(
        metric="device",
        trace=TraceInfo(path="/runs/w.pt.trace.json", project_root=root, ranks=[0], device="Test GPU", **info),
        totals=Totals(
            device_ns=100 * ms,
            busy_ns=100 * ms,
            idle_ns=50 * ms,
            wall_ns=150 * ms,
            wait_ns=20 * ms,
            steps=2,
            launches=8,
            operators=4,
        ),
        lines=lines,
        no_line=Numbers(self_device_ns=10 * ms, cost_ns=10 * ms),
        resolved=Resolved(line_ns=90 * ms, none_ns=10 * ms),
        functions=[
            Function(
                file=file,
                line=5,
                function="Net.forward",
                self_device_ns=90 * ms,
                total_device_ns=90 * ms,
                cost_ns=90 * ms,
                exact=True,
            ),
            Function(file=file, line=10, function="train", total_device_ns=90 * ms, exact=True),
        ],
        call_tree=[
            CallNode(-1, 2, 0, ms),
            CallNode(0, 0, 60 * ms, 5 * ms),
            CallNode(0, 1, 30 * ms, 2 * ms),
            CallNode(-1, 3, 0, 3 * ms),
            CallNode(-1, -1, 10 * ms, 0),
        ],
        files={file: SourceFile(text=text)},
    )


def record(
    root: Path,
    *,
    file: str | None = None,
    text: str | None = SOURCE,
    sha256: str = "",
    name: str = "w.fit.rank0.1760000000000000000.pt.trace.json",
    scale: int = 1,
    **own: Any,
) -> Path:
    """Writes a trace of `SOURCE` into the workspace's `deepscope_logs`; times are microseconds, `scale` stretches them.

    30 us of device time on line 6 (a third of it backward), 10 us on line 7, both called from line 11; line 12 waits.
    """
    path = file or str(root / "train.py")
    recorded: dict[str, Any] = {"path": path}
    if text is not None:
        recorded["text"] = text
    if sha256:
        recorded["sha256"] = sha256
    us = 1000 * scale
    built = TraceBuilder(
        deepscope={
            "version": "0",
            "project_root": str(root),
            "recorded_at": "2026-01-02T03:04:05+00:00",
            "stage": "fit",
            "rank": 0,
            "world_size": 1,
            "arguments": "0e5751c0",
            "git": {"commit": "0123456789abcdef", "dirty": True},
            **own,
        }
    )
    built.step(1, 0, 200 * us)
    built.line(path, 11, "train", 1 * us, 60 * us, first_line=10)
    built.line(path, 6, "Net.forward", 2 * us, 20 * us, first_line=5)
    built.op("aten::mm", 3 * us, 10 * us, sequence=1)
    built.kernel("sgemm", 4 * us, 10 * us, 20 * us)
    built.line(path, 7, "Net.forward", 25 * us, 10 * us, first_line=5)
    built.kernel("relu_kernel", 26 * us, 40 * us, 10 * us)
    built.line(path, 12, "train", 70 * us, 100 * us, first_line=10)
    built.flow(3 * us, 80 * us)
    built.backward("MmBackward0", 80 * us, 20 * us, 1)
    built.kernel("sgemm_back", 85 * us, 90 * us, 10 * us, tid=BACKWARD)
    built.runtime("cudaStreamSynchronize", 110 * us, 40 * us)
    built.files[0].update(recorded)
    folder = root / "deepscope_logs"
    folder.mkdir(parents=True, exist_ok=True)
    hidden = built.write(folder / "being-written")
    os.utime(hidden, (1_760_000_000, 1_760_000_000))  # an old file: nobody waits for the end of its writing
    return hidden.rename(folder / name)


def make_opened_profile(file: str, **info: Any) -> Profile:
    """The same with what is below the projection: two layers of a package, one much like the other, and a small rest.

    Of its 60 ms (10 of them backward) 35 stand in `encoder.0`, 22 in `encoder.1`, 3 are folded together; the 30 ms of
    relu are one operator's kernel.
    """
    ms = 10**6
    profile = make_profile(file, **info)
    profile.call_tree[1].backward_device_ns = 10 * ms
    profile.places = [
        PartKey("module", "encoder.0", LIBRARY, 10),
        PartKey("module", "encoder.1", LIBRARY, 10),
        PartKey("library", "Layer.forward", LIBRARY, 12),
        PartKey("module", "encoder.0.proj", LIBRARY, 30),
        PartKey("module", "encoder.1.proj", LIBRARY, 30),
        PartKey("operator", "aten::mm"),
        PartKey("kernel", "void ns::sgemm<float>(float*)"),
        PartKey("other", ""),
        PartKey("operator", "aten::relu"),
    ]
    project, relu = 1, 2
    profile.parts = [
        Part(project, -1, 0, 0, 0, 2),
        Part(project, 0, 2, 0, 0, 2),
        Part(project, 1, 3, 0, 0, 2),
        Part(project, 2, 5, 0, 0, 2),
        Part(project, 3, 6, 35 * ms, 10 * ms, 4),
        Part(project, -1, 1, 0, 0, 2),
        Part(project, 5, 2, 2 * ms, 0, 2),
        Part(project, 6, 4, 0, 0, 2),
        Part(project, 7, 5, 0, 0, 2),
        Part(project, 8, 6, 20 * ms, 0, 2),
        Part(project, -1, 7, 3 * ms, 0, 9),
        Part(relu, -1, 8, 0, 0, 2),
        Part(relu, 11, 6, 30 * ms, 0, 2),
    ]
    return profile
