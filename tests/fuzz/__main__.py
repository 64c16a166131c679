"""Reads mutated traces by the thousand: `scripts/fuzz --count 100000`; each failing one is kept and can be replayed.

A case is known by its number alone, so long as the traces that it starts from are the same.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fuzz.cases import Case, built_documents, make_case, recorded_documents
from fuzz.judge import judge, limit_memory

_TESTS = Path(__file__).resolve().parents[1]
_MEMORY_BYTES = 2 << 30
"""For everything that is made from one small file, and what the interpreter keeps."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 where a case failed."""
    options = _parse_options(arguments)
    limit_memory(_MEMORY_BYTES)
    with tempfile.TemporaryDirectory(prefix="deepscope-fuzz-") as name:
        folder = Path(name)
        if options.replay is not None:
            judge(_kept(options.replay), folder, deeply=True)
            print("holds")
            return 0
        documents = built_documents() + recorded_documents(options.traces)
        print(f"cases {options.first} to {options.first + options.count - 1}, from {len(documents)} traces")
        outcomes: Counter[str] = Counter()
        for number in range(options.first, options.first + options.count):
            case = make_case(number, documents)
            try:
                outcomes[judge(case, folder, deeply=number % 3 == 0)] += 1
            except Exception:  # whatever it is, it is a finding
                outcomes["FAILED"] += 1
                place = _keep(case, options.failures)
                print(f"case {number} ({', '.join(case.story)}): {place}\n{traceback.format_exc()}", flush=True)
                if outcomes["FAILED"] == options.most_failures:
                    break
            if number % 1000 == 999:
                print(f"case {number}: {dict(outcomes)}", flush=True)
    print(dict(outcomes))
    return int(outcomes["FAILED"] > 0)


def _parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000, help="cases to run (default 2000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (default 0)")
    traces = _TESTS / "data" / "traces"
    parser.add_argument("--traces", type=Path, default=traces, help=f"recorded traces to start from (default {traces})")
    parser.add_argument("--failures", type=Path, default=Path("fuzz-failures"), help="where failing cases are kept")
    parser.add_argument("--most-failures", type=int, default=20, help="stop after so many (default 20)")
    parser.add_argument("--replay", type=Path, help="a kept case to be read again, in place of all others")
    return parser.parse_args(arguments)


def _keep(case: Case, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / case.name
    path.write_bytes(case.data)
    asked = {"number": case.number, "partial": case.partial, "step": case.step, "story": case.story}
    path.with_suffix(".case").write_text(json.dumps(asked) + "\n")
    return path


def _kept(path: Path) -> Case:
    asked = json.loads(path.with_suffix(".case").read_text())
    return Case(data=path.read_bytes(), **asked)


if __name__ == "__main__":
    sys.exit(main())
