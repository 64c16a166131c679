"""The answers of commands."""
