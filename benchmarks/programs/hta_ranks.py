"""The ranks of a folder with HTA: parsed side by side, then the times of each rank that `deepscope ranks` has, too.

hta_ranks.py FOLDER
"""

import logging
import sys
import warnings


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_dir=sys.argv[1])
    times = analysis.get_temporal_breakdown(visualize=False)
    analysis.get_comm_comp_overlap(visualize=False)
    analysis.get_gpu_kernel_breakdown(visualize=False)
    print(len(times))


if __name__ == "__main__":
    main()
