"""Ranks beside ranks: who waits for whom, who is late, and which line made them late (docs/ranks.md)."""
