"""Profiles built by hand, whose every number is known."""

from __future__ import annotations

from typing import Any

from deepscope.analysis.peaks import peaks_of
from deepscope.analysis.verdict import judge
from deepscope.records import (
    CallNode,
    Collective,
    CounterBlock,
    CounterSeries,
    CriticalLine,
    CriticalPath,
    CriticalTimes,
    CurvePoint,
    DeviceMemory,
    Edit,
    Finding,
    Function,
    HeldByLine,
    HeldMemory,
    HostThread,
    Kernel,
    Library,
    Line,
    Memory,
    MemoryFailure,
    Module,
    Numbers,
    Operator,
    OverviewRow,
    Phase,
    Profile,
    Rate,
    Remedy,
    Resolved,
    RunEpoch,
    RunPart,
    SourceFile,
    Step,
    Stream,
    Top,
    Totals,
    TraceInfo,
    WholeRun,
    Why,
)

ROOT = "/home/ada/project"
MODEL = f"{ROOT}/nets/model.py"
TRAIN = f"{ROOT}/train.py"
MS = 1_000_000

_TRAIN_TEXT = """import torch
for batch in loader:
    loss = net(batch).mean()
    loss.backward()
    total += loss.item()
"""


def line(file: str, number: int, function: str, self_ns: int, **numbers: Any) -> Line:
    """An exact line with this device time, all of it forward unless said."""
    numbers.setdefault("total_device_ns", self_ns)
    numbers.setdefault("exact", True)
    numbers.setdefault("cost_ns", self_ns + numbers.get("idle_ns", 0) + numbers.get("python_ns", 0))
    return Line(file=file, line=number, function=function, self_device_ns=self_ns, **numbers)


def finding(code: str, title: str, file: str, number: int, saving_ns: int, evidence: Any, remedy: Remedy) -> Finding:
    """A finding at a line."""
    return Finding(code=code, title=title, severity="warning", file=file, line=number, message=title.lower(),
                   evidence=evidence, saving_ns=saving_ns, remedy=remedy, doc=f"docs/findings/{code}.md")  # fmt: skip


def training() -> Profile:
    """A training run of two steps on a GPU: 100 ms of device time, 90 ms at five lines, 10 ms at none."""
    lines = [
        line(
            MODEL, 42, "Net.forward", 50 * MS, backward_device_ns=30 * MS, self_cpu_ns=4 * MS, total_cpu_ns=6 * MS,
            launches=1200, calls=24, operators=72, bytes_allocated=3 << 20, idle_ns=MS, flops=2 * 10**12,
            why=Why(
                rates=[Rate("", 0, 30 * MS, 0, 75 * 10**9), Rate("bfloat16", 8, 18 * MS, 2 * 10**12, 4 * 10**9)],
                short_ns=2 * MS, host_ns=MS, kernels=1200, delay_ns=24 * MS, queued=3600, occupied_ns=20 * MS,
                occupancy_known_ns=50 * MS,
            ),
            text="        x = self.attention(x, mask=mask) + self.feed_forward(self.norm(x))\n",
            top_operators=[Top("aten::addmm", 30 * MS, 48)], top_kernels=[Top("sgemm_128x64", 28 * MS, 48)],
            libraries=[
                Library("transformers.models.gpt2.modeling_gpt2", "GPT2Attention.forward", "aten::addmm", 40 * MS,
                        "transformers.models.gpt2.*", 45 * MS),
                Library("torch.optim.adamw", "AdamW.step", "aten::add_", 2 * MS, "torch.optim.adamw", 2 * MS),
            ],
        ),
        line(MODEL, 17, "Net.embed", 20 * MS, backward_device_ns=5 * MS, self_cpu_ns=2 * MS, total_cpu_ns=2 * MS,
             launches=12, calls=2, operators=4, in_compiled_region=True, why=Why(unknown_ns=20 * MS),
             text="    return self.table[tokens]"),
        line(TRAIN, 5, "main", 12 * MS, self_cpu_ns=9 * MS, total_cpu_ns=9 * MS, wait_ns=8 * MS, idle_ns=14 * MS,
             launches=2, calls=2, operators=2, d2h_ns=12 * MS, d2h_bytes=8,
             why=Why(copies_ns=12 * MS, waiting_ns=14 * MS)),
        line(f"{ROOT}/nets/漢字.py", 7, "数える", 8 * MS, self_cpu_ns=MS, total_cpu_ns=MS, launches=4, calls=2,
             operators=2, why=Why(short_ns=8 * MS, kernels=4, queued=4),
             text="数 = 文字列の長さ(入力) + 全部を数えるための長い名前の関数(引数)  # 漢字"),
        line(f"{ROOT}/data.py", 9, "Data.__getitem__", 0, exact=False, worker_ns=700 * MS, worker_cpu_ns=300 * MS,
             self_cpu_ns=3 * MS, total_cpu_ns=3 * MS, calls=64),
    ]  # fmt: skip
    profile = Profile(
        metric="device",
        trace=TraceInfo(
            path=f"{ROOT}/deepscope_logs/ada_17.fit.rank0.1712195495519689047.pt.trace.json.gz",
            ranks=[0], device="NVIDIA H100 80GB HBM3", device_count=8, hostname="ada",
            recorded_at="2026-01-02T03:04:05+01:00", stage="fit", project_root=ROOT, git_commit="0123456789abcdef",
            git_dirty=True, python="3.13.0", torch="2.13.0", lightning="2.6.6", deepscope="0.1.0",
            line_source="scopes", warnings=["2 threads started by the program were not recorded"],
            recording={"entries": 5200}, also_recorded=["validate", "sanity_check"],
        ),
        totals=Totals(device_ns=100 * MS, busy_ns=80 * MS, idle_ns=20 * MS, wall_ns=100 * MS, wait_ns=8 * MS, steps=2,
                      launches=1218, operators=80, recording_ns=MS, worker_ns=700 * MS,
                      worker_cpu_ns=300 * MS),
        lines=lines,
        no_line=Numbers(self_device_ns=10 * MS, total_device_ns=10 * MS, self_cpu_ns=MS, total_cpu_ns=MS,
                        idle_ns=5 * MS, cost_ns=15 * MS, launches=6),
        resolved=Resolved(line_ns=90 * MS, none_ns=10 * MS),
        functions=[
            Function(file=MODEL, line=38, function="Net.forward", exact=True, self_device_ns=50 * MS,
                     total_device_ns=70 * MS, backward_device_ns=30 * MS, self_cpu_ns=4 * MS, calls=24,
                     cost_ns=50 * MS),
            Function(file=TRAIN, line=1, function="main", exact=True, self_device_ns=12 * MS, total_device_ns=90 * MS,
                     self_cpu_ns=9 * MS, wait_ns=8 * MS, calls=1, cost_ns=12 * MS),
        ],
        modules=[Module(path="net.attention", class_name="Attention", self_device_ns=40 * MS, total_device_ns=40 * MS)],
        operators=[
            Operator(name="aten::addmm", calls=48, self_device_ns=60 * MS, total_device_ns=60 * MS, self_cpu_ns=2 * MS,
                     total_cpu_ns=3 * MS, flops=2 * 10**12,
                     why=Why(rates=[Rate("bfloat16", 8, 60 * MS, 2 * 10**12, 4 * 10**9)])),
            Operator(name="aten::item", calls=2, self_device_ns=12 * MS, total_device_ns=12 * MS, self_cpu_ns=MS,
                     total_cpu_ns=9 * MS),
        ],
        kernels=[
            Kernel(name="void sgemm_128x64<float, 4>(float const*)", kind="kernel", calls=48, device_ns=60 * MS,
                   mean_ns=1_250_000, max_ns=3 * MS, operator="aten::addmm"),
            Kernel(name="Memcpy DtoH (Device -> Pageable)", kind="memcpy", calls=2, device_ns=12 * MS, mean_ns=6 * MS,
                   max_ns=7 * MS, operator="aten::item"),
        ],
        critical=CriticalPath(
            steps=2, evaluated_steps=2, critical_ns=100 * MS, cpu_ns=20 * MS, data_ns=15 * MS, kernel_ns=60 * MS,
            return_ns=5 * MS,
            lines=[
                CriticalLine(file=MODEL, line=42, function="Net.forward", exact=True, critical_ns=60 * MS,
                             kernel_ns=55 * MS, return_ns=5 * MS, would_shorten_ns=24_600_000),
                CriticalLine(file=TRAIN, line=5, function="main", exact=True, critical_ns=14 * MS, cpu_ns=14 * MS,
                             would_shorten_ns=0),
                CriticalLine(file=MODEL, line=17, function="Net.embed", exact=True, critical_ns=5 * MS,
                             kernel_ns=5 * MS),
            ],
            others=CriticalTimes(cpu_ns=MS), no_line=CriticalTimes(data_ns=15 * MS, cpu_ns=5 * MS),
        ),
        steps=[
            Step(number=2, start_ns=0, duration_ns=55 * MS, device_ns=52 * MS, busy_ns=42 * MS, idle_ns=13 * MS,
                 wait_ns=5 * MS, phases={"data": 15 * MS, "forward": 20 * MS, "backward": 20 * MS},
                 slow_file=TRAIN, slow_line=5, slow_function="main", slow_ns=9 * MS),
            Step(number=3, start_ns=55 * MS, duration_ns=45 * MS, device_ns=48 * MS, busy_ns=38 * MS, idle_ns=7 * MS,
                 wait_ns=3 * MS, phases={"data": 5 * MS, "forward": 20 * MS, "backward": 20 * MS}),
        ],
        phases=[
            Phase(name="data", wall_ns=20 * MS, device_ns=0, calls=2),
            Phase(name="forward", wall_ns=40 * MS, device_ns=55 * MS, calls=2),
            Phase(name="backward", wall_ns=40 * MS, device_ns=45 * MS, calls=2),
        ],
        whole_run=WholeRun(
            duration_ns=60_000 * MS,
            parts=[
                RunPart(name="steps", time_ns=46_000 * MS, times=900),
                RunPart(name="data", time_ns=1_500 * MS, times=900),
                RunPart(name="evaluation", time_ns=6_000 * MS, times=3),
                RunPart(name="checkpoint", time_ns=600 * MS, times=2), RunPart(name="logging", time_ns=0, times=0),
                RunPart(name="recording", time_ns=2_000 * MS, times=0),
                RunPart(name="start", time_ns=3_000 * MS, times=0),
                RunPart(name="rest", time_ns=900 * MS, times=0),
            ],
            epochs=[
                RunEpoch(number=0, epochs=2, steps=600, steps_ns=30_000 * MS, data_ns=1_000 * MS),
                RunEpoch(number=2, epochs=1, steps=300, steps_ns=16_000 * MS, data_ns=500 * MS),
            ],
            first_step_ns=900 * MS,
        ),
        overview=[
            OverviewRow(section="step", name="kernel", time_ns=80 * MS, whole_ns=100 * MS, steps=2),
            OverviewRow(section="step", name="runtime", time_ns=12 * MS, whole_ns=100 * MS, steps=2),
            OverviewRow(section="step", name="other", time_ns=8 * MS, whole_ns=100 * MS, steps=2),
            OverviewRow(section="span", name="compute", time_ns=70 * MS, whole_ns=95 * MS),
            OverviewRow(section="span", name="non-compute", time_ns=10 * MS, whole_ns=95 * MS),
            OverviewRow(section="span", name="idle", time_ns=15 * MS, whole_ns=95 * MS),
            OverviewRow(section="overlap", name="communication", time_ns=4 * MS, whole_ns=8 * MS),
            OverviewRow(section="idle", name="host wait", time_ns=9 * MS, whole_ns=10 * MS),
            OverviewRow(section="idle", name="kernel wait", time_ns=MS, whole_ns=10 * MS),
            OverviewRow(section="device", device="device:0", name="utilisation", time_ns=80 * MS, whole_ns=100 * MS),
            OverviewRow(section="device", device="device:0", name="occupancy", time_ns=24 * MS, whole_ns=80 * MS),
        ],
        threads=[
            HostThread(role="training", number=0, process="17", thread="17", name="thread 17 (python)",
                       span_ns=100 * MS, operator_ns=30 * MS, runtime_ns=20 * MS, python_ns=40 * MS,
                       annotation_ns=6 * MS, rest_ns=4 * MS, operators=60, runtime_calls=1400, launches=818,
                       device_ns=55 * MS, wait_ns=8 * MS),
            HostThread(role="autograd", number=0, process="17", thread="23", name="thread 23 (pt_autograd_0)",
                       span_ns=40 * MS, operator_ns=25 * MS, runtime_ns=5 * MS, python_ns=0, annotation_ns=0,
                       rest_ns=10 * MS, operators=20, runtime_calls=410, launches=400, device_ns=45 * MS, wait_ns=0),
        ],
        streams=[
            Stream(device=0, stream=7, device_ns=92 * MS, kernel_ns=80 * MS, copy_ns=12 * MS, fill_ns=0,
                   collective_ns=0, kernels=1216, copies=2, fills=0, collectives=0, busy_ns=76 * MS,
                   overlapped_ns=4 * MS, idle_ns=24 * MS, host_wait_ns=9 * MS, kernel_wait_ns=MS, other_wait_ns=0),
            Stream(device=0, stream=20, device_ns=8 * MS, kernel_ns=0, copy_ns=0, fill_ns=0, collective_ns=8 * MS,
                   kernels=0, copies=0, fills=0, collectives=2, busy_ns=8 * MS, overlapped_ns=4 * MS,
                   idle_ns=92 * MS, host_wait_ns=40 * MS, kernel_wait_ns=0, other_wait_ns=0),
        ],
        collectives=[
            Collective(kind="all_reduce", library="nccl", group="0", group_description="default_pg",
                       group_ranks="0-1", group_size=2, dtype="bfloat16", size_class_bytes=64 << 20, on_device=True,
                       calls=2, time_ns=8 * MS, bytes=160 << 20, bytes_known_ns=8 * MS, bus_bytes=160 << 20,
                       bus_known_ns=8 * MS, exposed_ns=4 * MS, shortest_ns=[3 * MS, 5 * MS], min_ns=3 * MS,
                       max_ns=5 * MS),
        ],
        counters=[
            CounterSeries(counter="CPU", series="all", unit="%", mean=62.5, smallest=0.0, largest=99.0, samples=9,
                          covered_ns=100 * MS, is_own=True,
                          blocks=[CounterBlock(0, 25.0, 0.0, 40.0, 50 * MS),
                                  CounterBlock(1, 99.0, 99.0, 99.0, 50 * MS)]),
            CounterSeries(counter="memory", series="process", unit="B", mean=3.0 * (1 << 30), smallest=1.0 * (1 << 30),
                          largest=4.5 * (1 << 30), samples=9, covered_ns=100 * MS, is_own=True),
            CounterSeries(counter="page faults", series="minor", unit="1/s", mean=0.25, largest=12345.0, samples=9,
                          covered_ns=100 * MS, is_own=True),
            CounterSeries(counter="GPU SM clock", series="0", unit="MHz", mean=1410.0, smallest=1305.0, largest=1980.0,
                          samples=9, covered_ns=100 * MS, is_own=True),
            CounterSeries(counter="counter of another", series="value", mean=12.34, smallest=-5.0, largest=1e9,
                          samples=1),
        ],
        call_tree=[
            CallNode(-1, 2, 12 * MS, 9 * MS, 0),
            CallNode(0, 0, 50 * MS, 4 * MS, 30 * MS),
            CallNode(0, 1, 20 * MS, 2 * MS, 5 * MS),
            CallNode(1, 3, 8 * MS, MS, 0),
            CallNode(-1, -1, 10 * MS, MS, 0),
        ],
        findings=[
            finding("DS001", "Device synchronisation in the hot loop", TRAIN, 5, 14 * MS,
                    {"wait_ns": 8 * MS, "waits": 2, "waits_per_step": 1.0, "device_idle_after_ns": 14 * MS},
                    Remedy("Keep the value on the device, and read it every hundred steps.",
                           [Edit(5, ".item()", ".detach()")])),
            finding("DS018", "Parameters cast over and over", MODEL, 42, MS, {"casts": 1200, "casting_ns": MS},
                    Remedy("Cast once.")),
        ],
        files={TRAIN: SourceFile(text=_TRAIN_TEXT)},
    )  # fmt: skip
    judge(profile, peaks_of(profile.trace.device))
    return profile


def cpu_only() -> Profile:
    """A CPU-only recording by functions: no device, no line scopes."""
    return Profile(
        metric="cpu_self",
        trace=TraceInfo(path=f"{ROOT}/old.json", device="CPU", line_source="frames"),
        totals=Totals(
            device_ns=4 * MS, busy_ns=4 * MS, idle_ns=0, wall_ns=6 * MS, wait_ns=0, steps=0, launches=0, operators=3
        ),
        lines=[
            line("torch/nn/modules/linear.py", 113, "forward", 3 * MS, exact=False, self_cpu_ns=3 * MS, calls=3),
            line(TRAIN, 2, "main", MS, exact=False, self_cpu_ns=MS, calls=1),
        ],
        no_line=Numbers(),
        resolved=Resolved(function_ns=4 * MS),
    )  # fmt: skip


def hostile() -> Profile:
    """Names in it try to steer the terminal, the spreadsheet and the table."""
    evil = "\x1b]0;owned\x07\x1b[2J\r\n\u202egnp.exe\x9b31m\ud800\u200b"
    return Profile(
        metric="device",
        trace=TraceInfo(path=f"/tmp/{evil}.json", device=evil, stage=evil, warnings=[evil], line_source="scopes"),
        totals=Totals(device_ns=3, busy_ns=3, idle_ns=0, wall_ns=3, wait_ns=0, steps=0, launches=1, operators=1),
        lines=[
            line(f"/tmp/{evil}.py", 1, evil, 2, text=evil),
            line("=cmd|' /C calc'!A0", 2, "@SUM(1)", 1, text="\t-1+1"),
        ],
        no_line=Numbers(),
        resolved=Resolved(line_ns=3),
        operators=[Operator(name=evil, calls=1, self_device_ns=3, total_device_ns=3, self_cpu_ns=0, total_cpu_ns=0)],
        kernels=[Kernel(name=evil, kind="kernel", calls=1, device_ns=3, mean_ns=3, max_ns=3, operator=evil)],
        modules=[Module(path=evil, class_name=evil, self_device_ns=3)],
        functions=[Function(file=evil, line=1, function=evil, self_device_ns=3)],
        critical=CriticalPath(
            steps=1, critical_ns=3, kernel_ns=3,
            lines=[CriticalLine(file=f"/tmp/{evil}.py", line=1, function=evil, exact=True, critical_ns=3, kernel_ns=3)],
        ),
        phases=[Phase(name=evil, wall_ns=3, device_ns=3)],
        threads=[
            HostThread(role="other", number=0, process=evil, thread=evil, name=evil, span_ns=3, operator_ns=3,
                       runtime_ns=0, python_ns=0, annotation_ns=0, rest_ns=0, operators=1, runtime_calls=0,
                       launches=0, device_ns=0, wait_ns=0),
        ],
        collectives=[
            Collective(kind=evil, library=evil, group=evil, group_description=evil, group_ranks=evil, group_size=0,
                       dtype=evil, size_class_bytes=0, on_device=True, calls=1, time_ns=3, bytes=0, bytes_known_ns=0,
                       bus_bytes=0, bus_known_ns=0, exposed_ns=3, min_ns=3, max_ns=3),
        ],
        findings=[finding(evil, evil, f"/tmp/{evil}.py", 1, 1, {evil: 1, "operator": evil}, Remedy(evil))],
    )  # fmt: skip


def with_memory() -> Profile:
    """The training run with what was live at its peak: 10 GiB, 4 of them at a line."""
    profile, gib = training(), 1 << 30
    profile.lines[0].peak_bytes = profile.lines[0].peak_activations_bytes = 4 * gib
    profile.no_line.peak_bytes, profile.no_line.peak_parameters_bytes = 6 * gib, 2 * gib
    profile.no_line.peak_optimizer_bytes = 4 * gib
    profile.totals.peak_bytes = 10 * gib
    peak = HeldMemory(size_bytes=10 * gib, parameters_bytes=2 * gib, optimizer_bytes=4 * gib, activations_bytes=4 * gib)
    curve = [CurvePoint(5 * MS, 6 * gib, 12 * gib), CurvePoint(9 * MS, 10 * gib, 12 * gib)]
    device = DeviceMemory(
        device="cuda:0",
        peak=peak,
        largest_peak_bytes=10 * gib,
        peak_at_ns=9 * MS,
        capacity_bytes=80 * gib,
        curve=curve,
    )
    profile.memory = Memory(devices=[device], owners_known=True)
    return profile


def out_of_memory() -> Profile:
    """The same run, ended by an allocation that failed."""
    profile, gib = with_memory(), 1 << 30
    lines = [
        HeldByLine(file="", line=0, function="", size_bytes=6 * gib, optimizer_bytes=4 * gib, parameters_bytes=2 * gib),
        HeldByLine(file=MODEL, line=42, function="Net.forward", exact=True, size_bytes=gib, activations_bytes=gib),
    ]
    profile.memory.failure = MemoryFailure(
        error="OutOfMemoryError",
        message="CUDA out of memory. Tried to allocate 80.00 GiB",
        device="cuda:0",
        at_ns=12 * MS,
        held=HeldMemory(size_bytes=7 * gib, parameters_bytes=2 * gib, optimizer_bytes=4 * gib, activations_bytes=gib),
        lines=lines,
    )
    return profile
