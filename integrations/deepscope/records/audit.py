"""What is known of the steps that were looked at in place of being timed."""

from __future__ import annotations

from typing import Annotated

import msgspec

from deepscope.records.merging import Joined, Largest, distinct, merged_by


class Audit(msgspec.Struct, kw_only=True):
    """Of the steps behind the window (docs/recording.md); what was found in them are findings."""

    steps: Largest
    """How many were looked at."""
    operators: Largest = 0
    """Called in the first of them."""
    left_out: Joined = ""
    """Why none was; "" where some were."""
    hidden: Annotated[list[str], merged_by(distinct)] = []
    """Operators from outside torch: what they do with their arguments is unknown, and counts as a use."""
