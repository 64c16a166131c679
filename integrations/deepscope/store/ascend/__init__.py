"""What Ascend's profiler writes beside its traces, and what msprof-analyze makes of a cluster: found and read."""
