"""A Profile shown: as text, JSON, CSV, speedscope and folded stacks; two of them compared."""
