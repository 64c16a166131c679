"""A step that is looked at in place of being timed: what becomes of each operator's result."""
