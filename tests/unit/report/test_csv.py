import csv
import io

import pytest

import built_profiles
from deepscope.report.csv_report import csv_report
from deepscope.report.json_report import report_object
from deepscope.report.tables import TABLES


@pytest.mark.parametrize("by", TABLES)
def test_each_table_has_a_header_and_a_row_an_entry(by: str) -> None:
    profile = built_profiles.training()
    rows = list(csv.DictReader(io.StringIO(csv_report(profile, by=by))))
    entries = TABLES[by].rows(profile)
    assert len(rows) == len(entries) + (by == "line")
    assert all(None not in row and None not in row.values() for row in rows)


def test_the_lines_and_the_last_row_sum_to_the_device_time() -> None:
    profile = built_profiles.training()
    rows = list(csv.DictReader(io.StringIO(csv_report(profile))))
    assert sum(int(row["self_device_ns"]) for row in rows) == profile.totals.device_ns
    assert (rows[-1]["file"], rows[-1]["line"]) == ("", "0")
    assert (rows[0]["line"], rows[0]["exact"], rows[0]["function"]) == ("42", "1", "Net.forward")


@pytest.mark.parametrize("by", ["operator", "kernel"])
def test_names_stand_as_recorded_and_as_people_read_them(by: str) -> None:
    profile = built_profiles.training()
    entries = getattr(profile, TABLES[by].key)
    entries[0].name = raw = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)"
    rows = list(csv.DictReader(io.StringIO(csv_report(profile, by=by))))
    of_json = {row["name"]: row["label"] for row in report_object(profile, by=by)[TABLES[by].key]}
    assert {row["name"]: row["label"] for row in rows} == of_json
    assert of_json[raw] != raw


def test_no_cell_is_a_formula_and_none_breaks_its_row() -> None:
    for by in TABLES:
        text = csv_report(built_profiles.hostile(), by=by)
        assert all(character.isprintable() or character == "\n" for character in text)
        for row in csv.reader(io.StringIO(text)):
            assert not any(cell.lstrip().startswith(("=", "+", "@")) for cell in row)
    rows = list(csv.DictReader(io.StringIO(csv_report(built_profiles.hostile()))))
    assert rows[1]["file"] == "'=cmd|' /C calc'!A0"
    assert rows[1]["text"] == "' -1+1"
