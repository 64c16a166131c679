"""Records the repository's own traces anew: `python tests/record_own_traces.py [NAME …]`, on Python 3.12 or later.

What is this machine's goes out of them: folders and the host's name. Everything else is as it was recorded.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from graft import graft
from recorded_traces import OWN_TRACES

PROJECT, ENVIRONMENT, PYTHON, HOST = "/home/user/project", "/opt/venv", "/opt/python", "trainer"
COLLECTIVE_STREAM = 20


def recorded(program: str, *arguments: str, launcher: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """The traces that a program writes when it is recorded in this way, by rank."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, Path(program).stem)
        (project / "traces").mkdir(parents=True)
        (project / "pyproject.toml").write_text("")
        shutil.copyfile(OWN_TRACES / program, project / program)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": str(Path(folder, "cache"))}
        command = [sys.executable, *launcher, program, *arguments, "traces"]
        subprocess.run(command, cwd=project, check=True, env=environment)
        traces = sorted(project.rglob("*.pt.trace.json*"), key=lambda path: path.name.partition(".")[2])
        return [json.loads(general(text_of(trace), project)) for trace in traces]


def text_of(trace: Path) -> str:
    data = trace.read_bytes()
    return (gzip.decompress(data) if trace.suffix == ".gz" else data).decode()


def general(text: str, project: Path) -> str:
    """The text without this machine's places."""
    torch = find_spec("torch")
    assert torch is not None
    assert torch.origin is not None
    places = {
        str(project): PROJECT,
        str(Path(torch.origin).parents[4]): ENVIRONMENT,
        str(Path(sys.prefix)): ENVIRONMENT,
        str(Path(sys.base_prefix)): PYTHON,
        platform.node(): HOST,
    }
    for own, known in places.items():
        text = text.replace(own, known)
    return text


def write(name: str, document: dict[str, Any]) -> None:
    text = json.dumps(document, separators=(",", ":"))
    path = OWN_TRACES / f"{name}.json.gz"
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{path.name}: {path.stat().st_size:,} bytes, {len(document['traceEvents']):,} events")


def grafted_device() -> list[dict[str, Any]]:
    documents = recorded("train.py", "memory")
    graft(documents[0])
    return documents


def grafted_ranks() -> list[dict[str, Any]]:
    """Two ranks with a device each: collectives as NCCL has them, on a stream of their own, and copies."""
    documents = recorded("ranks.py", launcher=("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"))
    for document in documents:
        graft(document)
        document["distributedInfo"]["backend"] = "nccl"
        for event in document["traceEvents"]:
            if event["name"] == "gloo:all_reduce":
                event["name"] = "nccl:all_reduce"
            elif event["name"] == "kernel_c10d::allreduce_":
                _make_collective(event)
            elif event["name"] == "kernel_aten::copy_":
                event |= {"cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)"}
                event["args"]["bytes"] = 4096
    return documents


def _make_collective(kernel: dict[str, Any]) -> None:
    """Four times as long as it was, so that it overlaps what is launched after it."""
    kernel |= {
        "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "tid": COLLECTIVE_STREAM,
    }
    kernel["dur"] *= 4
    kernel["args"] |= {
        "stream": COLLECTIVE_STREAM,
        "Collective name": "allreduce",
        "In msg nelems": 4096,
        "Out msg nelems": 4096,
        "Group size": 2,
        "dtype": "Float",
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": "[0, 1]",
    }  # fmt: skip


TRACES: dict[tuple[str, ...], Callable[[], list[dict[str, Any]]]] = {
    ("lightning-with-workers",): lambda: recorded("train.py", "lightning"),
    ("torch-with-stack",): lambda: recorded("train.py", "torch"),
    ("device",): lambda: recorded("device.py"),
    ("grafted-device",): grafted_device,
    ("compiled",): lambda: recorded("compiled.py"),
    ("grafted-ranks-0", "grafted-ranks-1"): grafted_ranks,
    ("inference-without-steps",): lambda: recorded("inference.py"),
    ("threads-out-of-memory",): lambda: recorded("threads.py"),
}


def main() -> None:
    for names, make in TRACES.items():
        if len(sys.argv) == 1 or set(names) & set(sys.argv[1:]):
            for name, document in zip(names, make(), strict=True):
                write(name, document)


if __name__ == "__main__":
    main()
