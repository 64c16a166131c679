"""The Profile of a trace: found, made, merged and kept in a cache.

A path has files (`files`), of which some are traces (`trace_identity`) of runs (`runs`). A selection of them is read as
one (`selection`): into a Profile (`load`) or rank by rank (`ranks`). A trace is read in this process (`single_trace`),
several in processes (`several_traces`) or on a cluster (`dask_cluster`), for a server in one (`worker_process`). What
is made of traces is kept, and cleaned, by `cache`.
"""

from deepscope.records import Profile
from deepscope.store.load import load_profile

__all__ = ["Profile", "load_profile"]
