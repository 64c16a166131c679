"""A trace's memory by its blocks: what was live at any moment, asked for one moment at a time."""
