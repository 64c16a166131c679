"""Folders with the files of /proc and /sys as other machines have them, to the formats that the kernel documents."""

from __future__ import annotations

import os
from pathlib import Path

GIB = 1 << 30

STAT = """cpu  400 20 80 5000 60 10 10 20 5 0
cpu0 300 10 40 2000 50 5 5 10 5 0
cpu1 100 10 40 3000 10 5 5 10 0 0
intr 123 1 2 3
ctxt 9
"""
PROCESS = f"77 (name) S 1 77 77 0 -1 4194560 1500 0 12 0 250 50 0 0 20 0 8 0 100 123 456 {' 0' * 30}"
MEMINFO = """MemTotal:       16777216 kB
MemFree:         1000000 kB
MemAvailable:    8388608 kB
Buffers:               0 kB
Cached:                0 kB
Shmem:                 0 kB
Active:                0 kB
Inactive:              0 kB
SwapTotal:       2097152 kB
SwapFree:        1048576 kB
"""
DISKSTATS = """ 259       0 nvme0n1 1000 5 20000 300 500 6 8000 200 3 450 9000 0 0 0 0 0 0
 259       1 nvme0n1p1 900 5 19000 300 500 6 8000 200 3 450 9000 0 0 0 0 0 0
   8       0 sda 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
   7       0 loop0 5 0 50 1 0 0 0 0 0 1 1 0 0 0 0 0 0
"""
NETWORK = """Inter-|   Receive                       |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo:       0   0 0 0 0 0 0 0        0   0 0 0 0 0 0 0
  eth0: 1000000 700 0 0 0 0 0 0   500000 600 0 0 0 0 0 0
"""


def write(root: Path, files: dict[str, str]) -> Path:
    """Each text under its path."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def machine(root: Path, **changed: str) -> Path:
    """A machine of two cores with a disk, an interface and an InfiniBand adapter, in no container."""
    ports = "sys/class/infiniband/mlx5_0/ports/1/counters"
    files = {
        "proc/stat": STAT,
        f"proc/{os.getpid()}/stat": PROCESS,
        "proc/meminfo": MEMINFO,
        "proc/vmstat": "pswpin 0\npswpout 0\n",
        **{f"proc/{process}/statm": "5000 1024 300 1 0 900 0" for process in ("self", os.getpid())},
        "proc/diskstats": DISKSTATS,
        "sys/block/nvme0n1/stat": "",
        "sys/block/sda/stat": "",
        "sys/block/loop0/stat": "",
        "proc/net/dev": NETWORK,
        "proc/self/cgroup": "0::/user.slice/job\n",
        f"{ports}/port_rcv_data": "1000\n",
        f"{ports}/port_xmit_data": "2000\n",
    }
    return write(root, files | {name.replace("__", "/"): text for name, text in changed.items()})


def second_version(root: Path, *, quota: str = "150000 100000", limit: str = "max", group: str = "job") -> Path:
    """A control group of version 2 with a quota of its parent's."""
    mount = "sys/fs/cgroup"
    return write(
        root,
        {
            "proc/self/cgroup": f"0::/{group}\n",
            f"{mount}/cgroup.controllers": "cpu memory",
            f"{mount}/job/cpu.max": quota,
            f"{mount}/job/cpu.stat": "usage_usec 5000000\nuser_usec 1\nnr_periods 100\nnr_throttled 40\n",
            f"{mount}/job/memory.max": limit,
            f"{mount}/job/memory.current": str(3 * GIB),
        },
    )


def first_version(root: Path, *, quota: str = "200000") -> Path:
    """Control groups of version 1; the container sees its own at the mounts' roots, under the host's path."""
    return write(
        root,
        {
            "proc/self/cgroup": "4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc\n0::/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": quota,
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/cpu/cpu.stat": "nr_periods 100\nnr_throttled 7\nthrottled_time 5\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": str(GIB),
        },
    )


def two_nodes(root: Path) -> Path:
    """A machine of two NUMA nodes; the process has memory on both."""
    node = "sys/devices/system/node/node"
    maps = """7f00 default anon=5 dirty=5 N0=5 kernelpagesize_kB=4
7f10 default anon=3 dirty=3 N0=3 kernelpagesize_kB=2048
7f20 default file=/usr/lib/libc.so.6 mapped=7 N1=7 kernelpagesize_kB=4
7f30 default stack
"""
    return write(
        root,
        {
            f"{node}0/cpulist": "0-31,64-65\n",
            f"{node}1/cpulist": "32-63\n",
            f"{node}0/distance": "10 21\n",
            f"{node}1/distance": "21 10\n",
            f"{node}0/numastat": "numa_hit 5\nnuma_miss 6\nother_node 70\n",
            f"{node}1/numastat": "numa_hit 5\nnuma_miss 6\nother_node 90\n",
            "proc/self/numa_maps": maps,
        },
    )
