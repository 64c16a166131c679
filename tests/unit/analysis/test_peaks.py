"""Peaks that a user gives, and those of the table."""

from __future__ import annotations

import pytest

from deepscope.analysis.peaks import given_peaks, peak_of, peaks_of
from deepscope.errors import OptionError

H100 = "NVIDIA H100 80GB HBM3"


def test_given_peaks_are_in_operations_and_bytes_a_second():
    assert given_peaks(" FP32=67, bf16 = 989.4,bandwidth=3.35 ,") == pytest.approx(
        {"float32": 67e12, "bfloat16": 989.4e12, "bandwidth": 3.35e12}
    )
    assert given_peaks("") == {}
    assert given_peaks("float32=1e-3") == {"float32": 1e9}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("fp32", "'fp32'"),
        ("fp32=", "'fp32='"),
        ("fp32=fast", "'fp32=fast'"),
        ("fp32=-1", "'fp32=-1'"),
        ("fp32=0", "'fp32=0'"),
        ("fp32=nan", "'fp32=nan'"),
        ("fp32=inf", "'fp32=inf'"),
        ("fp32=67,speed=3", "'speed=3'"),
        ("fp32=67;bf16=989", "'fp32=67;bf16=989'"),
        ("fp32=67,float32=68", "float32 is given twice"),
    ],
)
def test_what_cannot_be_read_is_named_with_what_is_wanted(text, part):
    with pytest.raises(OptionError) as caught:
        given_peaks(text)
    assert part in str(caught.value)
    assert str(caught.value).startswith(f"peaks={text!r}: ")
    assert "twice" in part or "bandwidth=3.35" in str(caught.value)


def test_the_table_is_used_and_what_is_given_replaces_it():
    known = peaks_of(H100)
    assert known is not None
    assert known.flops_per_s["bfloat16"] == 989.4e12
    assert "float64" not in known.flops_per_s
    assert known.memory_bytes_per_s == 3.35e12
    assert known.source.startswith("https://")
    given = peaks_of(H100, "bf16=800,fp64=34")
    assert given is not None
    assert given.flops_per_s == known.flops_per_s | {"bfloat16": 800e12, "float64": 34e12}
    assert (given.memory_bytes_per_s, given.source) == (3.35e12, "given")


def test_an_unknown_device_needs_a_bandwidth_and_two_kinds_of_devices_have_no_peaks():
    assert peaks_of("Some GPU") is None
    assert peaks_of("Some GPU", "fp32=10") is None
    given = peaks_of("Some GPU", "bandwidth=1")
    assert given is not None
    assert (given.name, given.flops_per_s) == ("Some GPU", {})
    assert peaks_of(f"{H100}, NVIDIA A100-SXM4-40GB") is None
    assert peaks_of(f"{H100}, {H100}") == peaks_of(H100)


def test_a_device_has_rates_for_the_types_that_it_computes():
    peak = peak_of("Tesla V100-SXM2-32GB")
    assert peak is not None
    assert [peak.rate(name) for name in ("float32", "float16", "bfloat16", "float64")] == [15.7e12, 125e12, None, None]
