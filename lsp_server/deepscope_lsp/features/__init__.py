"""Thin handlers between the protocol and the engine, one file a feature."""
