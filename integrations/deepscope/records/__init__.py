"""The records of a Profile: what is known of a trace once it is analysed, and how it merges over ranks.

A new field of a line is one line here (`numbers.py`), one place under `analysis/` that fills it, one that shows it.
"""

from deepscope.records.costs import Costs, KeyFigures, bytes_per_s, cost_ns, flops_per_s, key_figures, step_length_ns
from deepscope.records.critical import CriticalLine, CriticalPath, CriticalTimes
from deepscope.records.findings import Edit, Evidence, Finding, Remedy, Severity
from deepscope.records.memory import (
    CounterBlock,
    CounterSeries,
    CurvePoint,
    DeviceMemory,
    HeldByLine,
    HeldMemory,
    Memory,
    MemoryFailure,
)
from deepscope.records.merging import RankSpread
from deepscope.records.numbers import Numbers
from deepscope.records.places import CallNode, Function, Library, Line, Module, Partner, Top
from deepscope.records.places_of_work import Collective, HostThread, Stream, ThreadRole
from deepscope.records.profile import PROFILE_FORMAT, Metric, Profile, Resolved, Totals
from deepscope.records.step_times import StepTimes
from deepscope.records.tables import (
    NO_OPERATOR,
    CollectiveCall,
    FrameworkPart,
    Kernel,
    KernelKind,
    Operator,
    OperatorInDetail,
    OverviewRow,
    OwnLine,
    OwnTimes,
    Phase,
    Step,
)
from deepscope.records.trace_info import DETAILS, PHASES, WHOLE, Detail, LineSource, PartOf, SourceFile, TraceInfo, View
from deepscope.records.whole_run import Audit, CompiledFunction, RunEpoch, RunPart, WholeRun
from deepscope.records.why import Part, PartKey, PartKind, Peaks, Rate, Verdict, Why

__all__ = [
    "DETAILS",
    "NO_OPERATOR",
    "PHASES",
    "PROFILE_FORMAT",
    "WHOLE",
    "Audit",
    "CallNode",
    "Collective",
    "CollectiveCall",
    "CompiledFunction",
    "Costs",
    "CounterBlock",
    "CounterSeries",
    "CriticalLine",
    "CriticalPath",
    "CriticalTimes",
    "CurvePoint",
    "Detail",
    "DeviceMemory",
    "Edit",
    "Evidence",
    "Finding",
    "FrameworkPart",
    "Function",
    "HeldByLine",
    "HeldMemory",
    "HostThread",
    "Kernel",
    "KernelKind",
    "KeyFigures",
    "Library",
    "Line",
    "LineSource",
    "Memory",
    "MemoryFailure",
    "Metric",
    "Module",
    "Numbers",
    "Operator",
    "OperatorInDetail",
    "OverviewRow",
    "OwnLine",
    "OwnTimes",
    "Part",
    "PartKey",
    "PartKind",
    "PartOf",
    "Partner",
    "Peaks",
    "Phase",
    "Profile",
    "RankSpread",
    "Rate",
    "Remedy",
    "Resolved",
    "RunEpoch",
    "RunPart",
    "Severity",
    "SourceFile",
    "Step",
    "StepTimes",
    "Stream",
    "ThreadRole",
    "Top",
    "Totals",
    "TraceInfo",
    "Verdict",
    "View",
    "WholeRun",
    "Why",
    "bytes_per_s",
    "cost_ns",
    "flops_per_s",
    "key_figures",
    "step_length_ns",
]
