"""Types of options, whichever click is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    FloatType = click.ParamType[float]
else:
    FloatType = click.ParamType  # before click 8.2 it takes no type
