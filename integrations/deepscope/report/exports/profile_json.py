"""The whole Profile as JSON: every record with the names of its fields."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from deepscope.records import Profile


def profile_json(profile: Profile) -> str:
    """A JSON object with the fields of `records.Profile`, in ASCII: no name can steer a terminal."""
    return json.dumps(plain_record(profile), indent=1)


def plain_record(value: Any) -> Any:
    """Records as objects with named fields, those too that the cache keeps as arrays."""
    if isinstance(value, msgspec.Struct):
        return {name: plain_record(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, (list, tuple)):
        return [plain_record(one) for one in value]
    if isinstance(value, dict):
        return {str(key): plain_record(one) for key, one in value.items()}
    return value
