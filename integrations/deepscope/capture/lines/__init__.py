"""Line scopes: which line of the user's code runs while torch records, on the profiler's own clock."""

from deepscope.capture.lines.levels import Limits
from deepscope.capture.lines.recorder import LineRecord, LineRecorder
from deepscope.capture.lines.table import ScopeRow
from deepscope.capture.lines.user_code import UserCode
from deepscope.trace.format.span_names import ScopeEvent, parse_name

__all__ = ["Limits", "LineRecord", "LineRecorder", "ScopeEvent", "ScopeRow", "UserCode", "parse_name"]
