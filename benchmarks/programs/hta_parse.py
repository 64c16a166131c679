"""Parses a trace with Holistic Trace Analysis into its joined data frame: what every one of its analyses starts from.

Usage: hta_parse.py TRACE
"""

import sys

from hta.common.trace import parse_trace_file

meta, frame, symbols = parse_trace_file(sys.argv[1])
print(len(frame))
