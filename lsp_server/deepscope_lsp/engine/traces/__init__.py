"""The traces there are, which of them is to be shown, and reading it."""
