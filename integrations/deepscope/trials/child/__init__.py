"""The process that runs the program: it applies remedies from outside, times steps, and keeps losses."""
