"""Trials: a program run unchanged and changed in turn, what that gains, and whether its losses stay the same."""
