"""The Profile of a trace: found, made, merged and kept in a cache."""

from deepscope.records import Profile
from deepscope.store.load import load_profile

__all__ = ["Profile", "load_profile"]
