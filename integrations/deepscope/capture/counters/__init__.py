"""Counters beside the trace: what the machine does while a window is open, sampled on a thread of its own."""
