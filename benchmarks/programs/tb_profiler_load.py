"""Loads a trace with torch-tb-profiler as its `RunLoader` does, in this process and without the web server.

Usage: tb_profiler_load.py TRACE
"""

import sys
import tempfile

from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.run_generator import RunGenerator

with tempfile.TemporaryDirectory() as cache:
    data = RunProfileData.parse("worker", None, sys.argv[1], cache)
    profile = RunGenerator("worker", None, data).generate_run_profile()
print(len(data.events))
