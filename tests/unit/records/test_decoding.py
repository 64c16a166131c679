"""Records are made of bytes in many threads at once: each kind for the first time, too."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import deepscope
from matched_ranks import Call, rank

HEAD = """
from deepscope.trace.format.header import glance
HEAD = b'{"deepscope": {"format": 1, "project_root": "/p", "hostname": "h", "device": {}, "git": null, "pid": 3}}'
def read():
    assert glance(HEAD).pid == 3
"""
SUMMARY = f"""
from deepscope.ranks.rank_summary import RankSummary
from deepscope.records.merging import decoded
BODY = {msgspec.msgpack.encode(rank(7, [Call(0, 9)]))!r}
def read():
    assert decoded(BODY, RankSummary).rank == 7
"""
THREADS = """
import random, sys, threading, time
sys.setswitchinterval(1e-6)
ready, done = threading.Barrier(16), []
def one():
    ready.wait()
    time.sleep(random.random() * 0.002)
    read()
    done.append(1)
threads = [threading.Thread(target=one) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(done) == 16
"""


@pytest.mark.parametrize("reading", [HEAD, SUMMARY], ids=["head", "summary"])
def test_many_threads_read_the_first_records_at_once(reading: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(deepscope.__file__).parents[1])}
    for _ in range(6):
        done = subprocess.run([sys.executable, "-c", reading + THREADS], env=environment, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
