"""Runs as tools of the Model Context Protocol, for coding assistants; docs/assistants.md describes them."""
