"""Templates of traces' names."""

from __future__ import annotations

import re

import pytest

from deepscope.capture import naming
from deepscope.errors import OptionError


def test_a_name_without_braces_stands_in_front_as_ever():
    assert naming.worker_name("exp", "fit", 3) == "exp.fit.rank3"
    assert re.fullmatch(r".+_\d+\.rank0", naming.worker_name(None, "", 0))


@pytest.mark.parametrize(
    ("template", "stage", "ranks", "expected"),
    [
        ("{program}-{stage}-{rank}", "fit", 8, "train-fit-2"),
        ("{program}-{stage}-{rank}", "", 8, "train-2"),
        ("{stage}_{rank:03}", "fit", 8, "fit_002"),
        ("run {rank}/../é", "", 1, "run_2_._"),
        ("{program}", "fit", 8, "train.fit.rank2"),
        ("{program}", "", 1, "train"),
        ("{{x}}{rank}", "", 1, "x_2"),
        ("a.pt.trace.json{rank}", "", 1, "a_pt_trace.json2"),
    ],
)
def test_a_template_is_filled_in(template: str, stage: str, ranks: int, expected: str):
    found = naming.worker_name(template, stage, 2, ranks, "src/train.py")
    assert found.strip("_.") == expected.strip("_.")
    assert re.fullmatch(r"[\w.-]+", found, re.ASCII)


def test_a_long_name_is_cut():
    assert len(naming.worker_name("{program}", "", 0, 1, "x" * 400)) <= 150


@pytest.mark.parametrize("template", ["{x}", "{", "{rank.real}", "{0}", "{}", "{host:03d}", "{rank!z}", "{rank[0]}"])
def test_a_field_that_is_not_there_is_told(template: str):
    with pytest.raises(OptionError, match=r"there are: \{worker\}, \{host\}"):
        naming.worker_name(template, "", 0)
