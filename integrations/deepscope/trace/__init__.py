"""A trace in memory: the Kineto reader and its columns, nesting, correlation, and the rewriting of a recorded file."""
