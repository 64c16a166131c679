"""A trace in memory: the Kineto reader and its columns, what belongs together in it, and what DeepScope adds to it."""
