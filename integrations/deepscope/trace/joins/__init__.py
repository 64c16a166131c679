"""What belongs together in a trace: nesting, launches and their work, forward and backward, scopes and their lines."""
