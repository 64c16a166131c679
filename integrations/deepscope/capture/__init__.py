"""Recording: torch's profiler driven window by window, with the lines of user code, and the trace that is written."""
