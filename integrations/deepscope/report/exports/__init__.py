"""A Profile and its trace in the forms of other tools: tables, profiles, timelines, scalars, a page."""
