"""A Profile and its trace in the forms of other tools: tables, call paths, timelines, scalars."""
