"""Traces of processes that ran at once share a clock: what one process sends, the other gets later."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from deepscope.trace.model import Trace
from deepscope.trace.read import read_trace
from recorded import TESTS

ROUNDS = 5

PARENT = """
import subprocess, sys, deepscope
from subprocess import PIPE
child = subprocess.Popen([sys.executable, sys.argv[2], sys.argv[1]], stdin=PIPE, stdout=PIPE, text=True)
assert child.stdout.readline() == "ready\\n"
with deepscope.profile(
    sys.argv[1], root=sys.argv[3], filename="parent", topics="minimal", align_time=True
) as recording:
    for number in range(5):
        with recording.annotate(f"parent.sends{number}"):
            print(number, file=child.stdin, flush=True)
        assert child.stdout.readline() == f"{number}\\n"
        with recording.annotate(f"parent.got{number}"):
            pass
child.stdin.close()
sys.exit(child.wait())
"""

CHILD = """
import sys, deepscope
with deepscope.profile(sys.argv[1], filename="child", topics="minimal") as recording:
    print("ready", flush=True)
    for number in range(5):
        assert sys.stdin.readline() == f"{number}\\n"
        with recording.annotate(f"child.got{number}"):
            pass
        with recording.annotate(f"child.sends{number}"):
            print(number, flush=True)
"""


def starts(trace: Trace) -> dict[str, int]:
    """Start of each annotation by the host's clock."""
    events = trace.events
    named = zip(events.name.tolist(), events.start_ns.tolist(), strict=True)
    return {trace.strings[name]: start + trace.unix_base_ns for name, start in named if name >= 0}


def test_what_one_process_sends_the_other_gets_later(tmp_path: Path):
    parent, child = tmp_path / "parent.py", tmp_path / "child.py"
    parent.write_text(PARENT)
    child.write_text(CHILD)
    folder = tmp_path / "traces"
    subprocess.run([sys.executable, parent, folder, child, TESTS], check=True, capture_output=True, timeout=300)
    traces = {path.name.partition(".")[0]: read_trace(path) for path in folder.glob("*.json.gz")}
    clocks = [trace.header.clock for trace in traces.values()]
    assert all(clock is not None for clock in clocks)
    error_ns = sum(clock.error_ns for clock in clocks if clock is not None)
    at = starts(traces["parent"]) | starts(traces["child"])
    for number in range(ROUNDS):
        assert at[f"parent.sends{number}"] <= at[f"child.got{number}"] + error_ns
        assert at[f"child.sends{number}"] <= at[f"parent.got{number}"] + error_ns
    aligned = traces["parent"]
    assert aligned.header.clock is not None
    assert aligned.header.clock.offset_ns == 0
    assert aligned.unix_base_ns == aligned.base_ns
    assert aligned.header.configuration is not None
    assert aligned.header.configuration.align_time
    assert not [name for trace in traces.values() for name in trace.strings if name.startswith("@")]
