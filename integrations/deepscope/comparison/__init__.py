"""Runs beside runs: what became slower or faster, and whether that is more than noise."""

from deepscope.comparison.compare import TABLES, Comparison, Difference, Status, compare
from deepscope.comparison.noise import NUMBERS, Number

__all__ = ["NUMBERS", "TABLES", "Comparison", "Difference", "Number", "Status", "compare"]
