"""The tables of a Profile, one module each, and what they are summed from: from an analysis to records."""
