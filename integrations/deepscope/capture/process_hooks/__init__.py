"""What else goes on in the process: signals, forks, other recorders, and that our failure is never theirs."""
