"""The Profile of a trace: found, made, merged and kept in a cache."""

from deepscope.store.load import load_profile
from deepscope.store.profile import Profile

__all__ = ["Profile", "load_profile"]
