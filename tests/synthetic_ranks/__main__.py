"""Writes synthetic ranks into a folder, and says what was planted: `python -m synthetic_ranks FOLDER --ranks 64`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from synthetic_ranks.ranks import SOURCE, write_ranks


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, default=64, help="a power of two")
    parser.add_argument("--source", type=Path, default=SOURCE)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--collectives", type=int, default=16, help="how many all-reduces a step has")
    parser.add_argument("--each", type=int, default=None, help="stragglers of each cause")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    options = vars(parser.parse_args())
    began = time.perf_counter()
    truth = write_ranks(options.pop("folder"), options.pop("ranks"), **options)
    print(f"{truth.world_size} ranks in {time.perf_counter() - began:.1f} s")
    for one in truth.stragglers:
        print(f"  rank {one.rank}: {one.cause}, {one.file}:{one.line}, {one.excess_ns / 1e6:.2f} ms a step")


if __name__ == "__main__":
    main()
