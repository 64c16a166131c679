"""A pprof profile read with protobuf, from the format's own definition."""

from __future__ import annotations

import gzip
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["read_pprof"]

_MESSAGES = {
    "Profile": "m sample_type ValueType 1,m sample Sample 2,m mapping Mapping 3,m location Location 4,"
    "m function Function 5,s string_table string 6,o drop_frames int64 7,o keep_frames int64 8,o time_nanos int64 9,"
    "o duration_nanos int64 10,o period_type ValueType 11,o period int64 12,r comment int64 13,"
    "o default_sample_type int64 14",
    "ValueType": "o type int64 1,o unit int64 2",
    "Sample": "r location_id uint64 1,r value int64 2,m label Label 3",
    "Label": "o key int64 1,o str int64 2,o num int64 3,o num_unit int64 4",
    "Mapping": "o id uint64 1,"
    "o memory_start uint64 2,o memory_limit uint64 3,o file_offset uint64 4,o filename int64 5",
    "Location": "o id uint64 1,o mapping_id uint64 2,o address uint64 3,m line Line 4,o is_folded bool 5",
    "Line": "o function_id uint64 1,o line int64 2,o column int64 3",
    "Function": "o id uint64 1,o name int64 2,o system_name int64 3,o filename int64 4,o start_line int64 5",
}
"""github.com/google/pprof/blob/main/proto/profile.proto: how often, name, type, number."""


def _message() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="perftools.profiles", syntax="proto3")
    kinds = {"int64": 3, "uint64": 4, "bool": 8, "string": 9}
    for name, fields in _MESSAGES.items():
        made = file.message_type.add(name=name)
        for one in fields.split(","):
            often, field, kind, number = one.split(" ")
            entry = made.field.add(
                name=field, number=int(number), label=1 if often == "o" else 3, type=kinds.get(kind, 11)
            )
            if kind not in kinds:
                entry.type_name = f".perftools.profiles.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))()


def read_pprof(content: bytes) -> Any:
    """The message in a compressed profile."""
    found = _message()
    found.ParseFromString(gzip.decompress(content))
    return found
