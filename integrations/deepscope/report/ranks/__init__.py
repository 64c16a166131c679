"""Ranks side by side as text, JSON and CSV."""

from deepscope.report.ranks.detail import rank_text
from deepscope.report.ranks.json_csv import BY, check_detail, rank_csv, rank_json, ranks_csv, ranks_json
from deepscope.report.ranks.text import ranks_text

__all__ = ["BY", "check_detail", "rank_csv", "rank_json", "rank_text", "ranks_csv", "ranks_json", "ranks_text"]
