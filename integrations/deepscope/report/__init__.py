"""A Profile shown: as text, JSON and CSV; two of them compared, and ranks side by side."""
