"""What is known of the recording process: rank, run, versions, device."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import uuid
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import torch

from deepscope.capture import torch_compat
from deepscope.capture.naming import current_folder
from deepscope.trace.format.header import Device

RUN_ID_VARIABLE = "DEEPSCOPE_RUN_ID"
"""Processes that this one starts during a run find the first part of their run's id here."""

_RANK_VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_LOCAL_VARIABLES = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
_PROGRAM_LENGTH = 200
_runs = 0
_launch = ("", 0)
"""The first part of this process's own run ids, and the process that made it."""


def find_rank() -> int:
    """The rank by the process group, else by the launcher's variables, else 0."""
    if _has_group():
        return int(torch.distributed.get_rank())
    return _number_in(_RANK_VARIABLES[:1] if "RANK" in os.environ else _RANK_VARIABLES, 0)


def knows_rank() -> bool:
    """Whether a launcher or a process group says which rank this is."""
    return _has_group() or any(name in os.environ for name in _RANK_VARIABLES)


def local_ranks() -> range:
    """The ranks of this host, as torchrun numbers them; this one alone where no launcher tells."""
    rank, count = find_rank(), os.environ.get("LOCAL_WORLD_SIZE", "")
    if "RANK" not in os.environ or not count.isdigit():
        return range(rank, rank + 1)
    first = rank - find_local_rank(0)
    return range(first, first + int(count))


def find_local_rank(rank: int) -> int:
    """The number among the ranks of this host by the launcher's variables, else `rank`."""
    return _number_in(_LOCAL_VARIABLES, rank)


def find_world_size() -> int:
    """The number of ranks, found in the same way; 1 without any sign."""
    if _has_group():
        return int(torch.distributed.get_world_size())
    # Only a rank makes a launch distributed: an interactive SLURM shell has tasks, but no process takes part.
    return _number_in(("WORLD_SIZE",), 1) if "RANK" in os.environ else 1


def _has_group() -> bool:
    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())


def _number_in(names: Iterable[str], default: int) -> int:
    """The first of these variables of the environment that is a number."""
    return next((int(word) for name in names if (word := os.environ.get(name, "")).isdigit()), default)


def new_run_id() -> str:
    """The id of a run that begins now, the n-th of this process.

    A process started by this one, or by the same launcher, gets the same id for its n-th run.
    """
    global _runs
    _runs += 1
    return f"{_launch_id()}-{_runs}"


def _launch_id() -> str:
    environment = os.environ
    elastic = environment.get("TORCHELASTIC_RUN_ID", "")
    if RUN_ID_VARIABLE in environment:
        return environment[RUN_ID_VARIABLE]
    if elastic not in ("", "none"):
        return f"{elastic}-{environment.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    global _launch
    if _launch[1] != os.getpid():  # a forked child's runs are not the parent's next ones
        _launch = (uuid.uuid4().hex[:12], os.getpid())
    environment[RUN_ID_VARIABLE] = _launch[0]
    return _launch[0]


def end_run() -> None:
    """Processes that are started from here on are no part of the run that has ended."""
    if _launch[0] and os.environ.get(RUN_ID_VARIABLE) == _launch[0]:
        del os.environ[RUN_ID_VARIABLE]


def agreed_run_id(proposal: str) -> str | None:
    """The id that all ranks use: the first of them to ask proposes it, for its run of the same number.

    None where they cannot agree, for lack of a process group. A launcher's id may come again in a later launch, into
    the same folder; so what is agreed on has a word of its own in it.
    """
    launch, _, number = proposal.rpartition("-")
    return agreed("run", proposal, f"{launch}.{uuid.uuid4().hex[:8]}-{number}")


def agreed(what: str, run_id: str, proposal: str) -> str | None:
    """What the first rank to ask proposed for this run of its; None for lack of a process group.

    torchrun's ranks may find the store of the launch before, when they are started again.
    """
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return torch_compat.agreed_value(f"deepscope/{attempt}/{what}/{run_id.rpartition('-')[2]}", proposal)


def program_name(root: Path) -> str:
    """What runs: the script, as seen from the project's root, or the module of `python -m`; "" where neither is known.

    Never an argument of it: those may hold secrets.
    """
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name != "__main__":
        return str(spec.name).removesuffix(".__main__")[:_PROGRAM_LENGTH]
    file = getattr(main, "__file__", None)
    if not isinstance(file, str):
        return "notebook" if _is_notebook() else ""
    path = current_folder() / file
    return (path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name)[:_PROGRAM_LENGTH]


def arguments_digest() -> str:
    """Eight hexadecimal digits that equal arguments of a program share. A kernel's arguments are not the notebook's."""
    words = [] if _is_notebook() else sys.argv[1:]
    text = "\0".join(map(str, words)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=4).hexdigest()


def _is_notebook() -> bool:
    return "ipykernel" in sys.modules and not hasattr(sys.modules.get("__main__"), "__file__")


def versions() -> dict[str, str]:
    """The versions of Python, torch and Lightning."""
    found = {"python": platform.python_version(), "torch": str(torch.__version__)}
    for package in ("lightning", "pytorch_lightning"):
        if package in sys.modules:
            found["lightning"] = str(getattr(sys.modules[package], "__version__", "")) or metadata.version(package)
            break
    return found


def describe_device() -> Device:
    """The devices in use: cuda (HIP, too), xpu, mps, another back end, or cpu.

    A back end that nothing has used yet is left alone: asking for a name would take memory on its device.
    """
    for kind in ("cuda", "xpu", "mtia", "hpu", "npu"):
        module = getattr(torch, kind, None)
        try:
            # In this order: `cuda.is_available` starts the driver, and forked children could not use it any more.
            if module is not None and getattr(module, "is_initialized", lambda: True)() and module.is_available():
                name = module.get_device_name() if hasattr(module, "get_device_name") else kind.upper()
                return Device(kind, str(name), int(module.device_count()))
        except (RuntimeError, AssertionError, NotImplementedError):
            continue
    mps = getattr(torch.backends, "mps", None)
    if mps is not None and mps.is_available():
        return Device("mps", f"Apple {platform.machine()}", 1)
    return Device("cpu", _cpu_name(), os.cpu_count() or 1)


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
            for line in stream:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "CPU"
