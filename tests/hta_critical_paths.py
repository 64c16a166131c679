"""Writes what HTA says of critical paths, for tests/integration/test_critical_peers.py.

HTA 0.5's critical path needs pandas 2 (`pip install HolisticTraceAnalysis==0.5.* "pandas<3"`), which the tests'
environment does not have: pandas 3 took `DataFrame.drop(axis=…, columns=…)` and changes in place of a column away.

    python tests/hta_critical_paths.py ../shared/traces tests/data/hta_critical_paths.json
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ALEXNET = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"
CASES = [
    ("holistictraceanalysis-cuda_event_sync-event_sync_trace.json.gz", "ProfilerStep", 0, ""),
    ("holistictraceanalysis-cuda_event_sync-event_sync_trace-2.json.gz", "ProfilerStep", 0, ""),
    ("holistictraceanalysis-benchmark_result_2869224_1695835535_trace.json.gz", ALEXNET, 1, ""),
    ("holistictraceanalysis-rank-0.apr_03_18_51_38.1102.json.gz", "ProfilerStep", 0, ""),
    ("holistictraceanalysis-mi250_minitoy_train_rocm6_2_kineto.json.gz", "ProfilerStep", 0, "autograd's thread"),
    ("holistictraceanalysis-nccl_parser_config-nccl_data.json.gz", "ProfilerStep", 0, "autograd's thread"),
]
"""Trace, annotation, which one of it, and why HTA's path is another one ("" where it is not)."""


def hta_path(trace: Path, annotation: str, instance: int) -> tuple[int, dict[str, float]]:
    """Length in microseconds, and the share of each kind in percent."""
    from hta.trace_analysis import TraceAnalysis  # here, so that the cases can be read without it

    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(trace, Path(folder) / "rank_0.json.gz")
        with contextlib.redirect_stdout(io.StringIO()):
            analysis = TraceAnalysis(trace_files={0: str(copy)}, trace_dir=folder)
            graph, _ = analysis.critical_path_analysis(rank=0, annotation=annotation, instance_id=instance)
            percent = {word: round(float(share), 4) for word, share in graph.summary().items() if word}
    return int(sum(edge.weight for edge in graph.critical_path_edges_set)), percent


def main() -> None:
    logging.disable(logging.CRITICAL)
    found: list[dict[str, Any]] = []
    for name, annotation, instance, differs in CASES:
        length, percent = hta_path(Path(sys.argv[1]) / name, annotation, instance)
        found.append({"trace": name, "annotation": annotation, "instance": instance, "alike": not differs,
                      "differs": differs, "length_us": length, "percent": percent})  # fmt: skip
    Path(sys.argv[2]).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
