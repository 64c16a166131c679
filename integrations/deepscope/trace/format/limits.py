"""Numbers as far as the format admits them."""

from __future__ import annotations

from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""So that sums over many stay exact."""

Moment = Annotated[int, msgspec.Meta(gt=-(2**62), lt=2**62)]

LineNumber = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
