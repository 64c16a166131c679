"""Traces of many ranks made out of a real one's, with stragglers and clocks that are known."""
