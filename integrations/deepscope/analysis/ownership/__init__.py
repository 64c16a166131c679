"""Who owns each piece of work: places in code, call paths, and the one line that a kernel belongs to."""
