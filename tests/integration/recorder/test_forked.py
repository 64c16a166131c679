"""Children that are forked while a window is open: nothing of the recording stays in them, and they may record."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import deepscope
from recorded import TESTS, load, run_python

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

KINDS = pytest.mark.parametrize("all_threads", [True, False])


def peak_bytes() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


class Sizes(Dataset):
    """Each item runs 1,000 operators and tells how large its worker has grown."""

    def __len__(self) -> int:
        return 48

    def __getitem__(self, index: int) -> int:
        x = torch.zeros(4)
        for _ in range(1_000):
            x = x + 1
        return peak_bytes()


@KINDS
@pytest.mark.parametrize("options", [{}, {"with_stack": True}], ids=str)
def test_workers_forked_in_a_window_do_not_grow(tmp_path: Path, all_threads: bool, options: dict[str, bool]) -> None:
    loader = DataLoader(Sizes(), batch_size=None, num_workers=2, multiprocessing_context="fork")
    with deepscope.profile(tmp_path, root=TESTS, wait=5, all_threads=all_threads, **options) as recording:
        assert recording.is_recording, "the first step is kept in reserve, and workers start in it"
        sizes = []
        for size in loader:
            sizes.append(size)
            recording.step()
    # Torch alone keeps a kilobyte of each of 22,000 operators.
    assert max(sizes[-4:]) - max(sizes[4:8]) < 8_000_000


CHILDREN = """
    import os, resource, threading, torch, deepscope
    from torch.profiler import profile

    def records_by_torch():
        with profile() as own:
            torch.ones(3).prod()
        keys = {{one.key for one in own.key_averages()}}
        assert "aten::prod" in keys and "aten::sum" not in keys, keys

    def records_by_deepscope():
        with deepscope.profile({folder!r} + "/child", root={root!r}, all_threads={all_threads}) as own:
            torch.ones(3).prod()
        keys = {{one.name for one in own.profile.operators}}
        assert "aten::prod" in keys and "aten::sum" not in keys, keys

    def starts_threads():
        def run_operators():
            x = torch.zeros(4)
            for _ in range(20_000):
                x = x + 1
        def peak_after_thread():
            thread = threading.Thread(target=run_operators)
            thread.start()
            thread.join()
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        before = peak_after_thread()
        assert peak_after_thread() - before < 8_000

    with deepscope.profile({folder!r}, root={root!r}, all_threads={all_threads}) as recording:
        torch.ones(3).sum()
        for body in (records_by_torch, records_by_deepscope, starts_threads):
            child = os.fork()
            if not child:
                body()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0, body
        torch.ones(3).cumsum(0)
"""


@KINDS
def test_children_may_record_and_start_threads_and_the_parents_recording_goes_on(
    tmp_path: Path, all_threads: bool
) -> None:
    done = run_python(CHILDREN.format(folder=str(tmp_path), root=str(TESTS), all_threads=all_threads))
    assert done.returncode == 0, done.stderr
    assert "RecordingWarning" not in done.stderr
    (path,) = tmp_path.glob("*.gz")
    names = {event["name"] for event in load(path)["traceEvents"]}
    assert {"aten::sum", "aten::cumsum"} <= names
    assert "aten::prod" not in names


OPEN_FILES = """
    import os, torch, deepscope

    def from_kernel():
        files = []
        for number in os.listdir("/proc/self/fd"):
            try:
                files.append(os.readlink("/proc/self/fd/" + number))
            except FileNotFoundError:  # that of the listing
                pass
        return sorted(file for file in files if file.startswith(("/proc/", "/sys/")) and not file.endswith("/fd"))

    torch.ones(3).sum()
    before = from_kernel()
    with deepscope.profile({folder!r}, root={root!r}):
        torch.ones(3).sum()
        child = os.fork()
        if not child:
            print([file for file in from_kernel() if file not in before], flush=True)
            os._exit(0)
        os.waitpid(child, 0)
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="/proc is Linux's")
def test_children_keep_no_file_of_the_kernels_open(tmp_path: Path) -> None:
    done = run_python(OPEN_FILES.format(folder=str(tmp_path), root=str(TESTS)))
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
