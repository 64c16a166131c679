"""Self values: what each node holds less what the nodes below it hold."""

from __future__ import annotations

import numpy as np

from deepscope.trace.model import Int64

__all__ = ["self_values"]


def self_values(values: Int64, caller: Int64) -> Int64:
    """Each node's value less those of the nodes that it called, at least 0; all of shape (k,).

    `caller` is the position of each node's caller, -1 for none. Callees that outlast their caller would take more than
    there is.
    """
    called = caller >= 0
    own: Int64 = values.copy()
    np.subtract.at(own, caller[called], values[called])
    return np.asarray(np.maximum(own, 0))
