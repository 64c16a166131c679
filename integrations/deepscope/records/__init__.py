"""The records of a Profile: what is known of a trace once it is analysed, and how it merges over ranks.

A new field of a line is one line here (`numbers.py`), one place under `analysis/` that fills it, one that shows it.
"""

from deepscope.records.below import Part, PartKind, Place
from deepscope.records.critical import CriticalLine, CriticalPath, CriticalTimes
from deepscope.records.findings import Edit, Evidence, Finding, Remedy, Severity
from deepscope.records.framework import FrameworkPart
from deepscope.records.memory import CurvePoint, DeviceMemory, HeldByLine, HeldMemory, Memory, MemoryFailure
from deepscope.records.merging import RankSpread
from deepscope.records.numbers import Numbers
from deepscope.records.places import CallNode, Function, Library, Line, Module, Partner, Top
from deepscope.records.profile import PROFILE_FORMAT, Metric, Profile, Resolved, Totals
from deepscope.records.tables import Kernel, KernelKind, Operator, Phase, Step
from deepscope.records.trace_info import LineSource, SourceFile, TraceInfo
from deepscope.records.why import Peaks, Rate, Verdict, Why

__all__ = [
    "PROFILE_FORMAT",
    "CallNode",
    "CriticalLine",
    "CriticalPath",
    "CriticalTimes",
    "CurvePoint",
    "DeviceMemory",
    "Edit",
    "Evidence",
    "Finding",
    "FrameworkPart",
    "Function",
    "HeldByLine",
    "HeldMemory",
    "Kernel",
    "KernelKind",
    "Library",
    "Line",
    "LineSource",
    "Memory",
    "MemoryFailure",
    "Metric",
    "Module",
    "Numbers",
    "Operator",
    "Part",
    "PartKind",
    "Partner",
    "Peaks",
    "Phase",
    "Place",
    "Profile",
    "RankSpread",
    "Rate",
    "Remedy",
    "Resolved",
    "Severity",
    "SourceFile",
    "Step",
    "Top",
    "Totals",
    "TraceInfo",
    "Verdict",
    "Why",
]
