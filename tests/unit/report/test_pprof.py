"""The pprof profile, decoded with protobuf from the format's own definition."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import built_profiles
from deepscope.records import Profile
from deepscope.report.exports.pprof import pprof_profile
from deepscope.report.paths import Depth

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


def message() -> Any:
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


def decoded(profile: Profile, depth: Depth = "kernel") -> Any:
    found = message()
    found.ParseFromString(gzip.decompress(pprof_profile(profile, depth)))
    return found


def flat() -> Profile:
    profile = built_profiles.training()
    profile.call_tree = []
    return profile


PROFILES = {
    "training": built_profiles.training(),
    "flat": flat(),
    "cpu": built_profiles.cpu_only(),
    "hostile": built_profiles.hostile(),
}


@pytest.mark.parametrize("name", PROFILES)
def test_all_time_is_in_the_samples(name: str) -> None:
    profile = PROFILES[name]
    found = decoded(profile)
    words = found.string_table
    assert [words[one.type] for one in found.sample_type] == ["device", "backward", "cpu"]
    assert {words[one.unit] for one in found.sample_type} == {"nanoseconds"}
    sums = [sum(sample.value[number] for sample in found.sample) for number in range(3)]
    rows = [*profile.lines, profile.no_line]
    assert sums[0] == profile.totals.device_ns
    if profile.call_tree == []:
        assert sums == [
            sum(getattr(row, one) for row in rows) for one in ("self_device_ns", "backward_device_ns", "self_cpu_ns")
        ]
    assert found.duration_nanos == profile.totals.wall_ns
    assert words[found.default_sample_type] == "device"


@pytest.mark.parametrize("name", PROFILES)
def test_the_file_is_what_pprof_checks_for(name: str) -> None:
    found = decoded(PROFILES[name])
    assert found.string_table[0] == ""
    assert len(set(found.string_table)) == len(found.string_table)
    locations = {one.id: one for one in found.location}
    functions = {one.id: one for one in found.function}
    assert len(locations) == len(found.location)
    assert len(functions) == len(found.function)
    assert 0 not in locations | functions
    for sample in found.sample:
        assert len(sample.value) == len(found.sample_type)
        assert sample.location_id
        assert all(one in locations for one in sample.location_id)
    assert all(line.function_id in functions for one in found.location for line in one.line)
    assert all(one.isprintable() for one in found.string_table)


def test_a_sample_begins_with_the_innermost_line() -> None:
    profile = built_profiles.training()
    found = decoded(profile, "line")
    functions = {one.id: one for one in found.function}
    locations = {one.id: one.line[0] for one in found.location}

    def frame(number: int) -> tuple[str, str, int]:
        line = locations[number]
        function = functions[line.function_id]
        return found.string_table[function.name], found.string_table[function.filename], line.line

    paths = {tuple(map(frame, sample.location_id)): sample.value[0] for sample in found.sample}
    outer, inner = (("main", built_profiles.TRAIN, 5), ("Net.forward", built_profiles.MODEL, 42))
    assert paths[inner, outer] == 50_000_000
    assert paths[outer,] == 12_000_000
    assert paths[("(no user line)", "", 0),] == 10_000_000


def test_negative_and_large_numbers_are_written_as_64_bits() -> None:
    profile = flat()
    profile.lines[0].self_device_ns, profile.lines[1].self_device_ns = -5, (1 << 63) - 1
    assert {-5, (1 << 63) - 1} <= {sample.value[0] for sample in decoded(profile).sample}
