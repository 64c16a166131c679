"""Traces that nobody would write: mutations of good ones, and what must hold of whatever is read from them."""
