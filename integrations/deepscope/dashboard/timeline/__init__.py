"""A trace by its events, asked for by window: slices at the detail that a screen can show, sums, search, links."""
