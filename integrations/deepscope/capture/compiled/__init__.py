"""What torch.compile made of the user's lines: the graphs that run in a window, and the source of their kernels."""
