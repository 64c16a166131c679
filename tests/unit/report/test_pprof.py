"""The pprof profile, decoded with protobuf from the format's own definition."""

from __future__ import annotations

from typing import Any

import pytest

import built_profiles
from deepscope.records import Profile
from deepscope.report.call_paths import Depth
from deepscope.report.exports.call_paths import pprof_profile
from pprof_message import read_pprof


def decoded(profile: Profile, depth: Depth = "kernel") -> Any:
    return read_pprof(pprof_profile(profile, depth))


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
