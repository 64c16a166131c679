"""The lines of a data loader's worker processes: timed there, collected here."""
