"""The tables of a Profile, one module each: from an analysis to records."""
