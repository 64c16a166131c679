"""Line scopes: which line of the user's code runs while torch records, on the profiler's own clock."""

from deepscope.capture.lines.overhead_budget import Limits
from deepscope.capture.lines.recorded_code import UserCode
from deepscope.capture.lines.recorder import LineRecord, LineRecorder
from deepscope.capture.lines.table import LocalScopeRow
from deepscope.trace.format.span_names import ScopeEvent, parse_name

__all__ = ["Limits", "LineRecord", "LineRecorder", "LocalScopeRow", "ScopeEvent", "UserCode", "parse_name"]
