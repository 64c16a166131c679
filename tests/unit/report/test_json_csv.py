"""The reports as JSON and CSV are the contract that docs/report.md describes."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

import built_profiles
from deepscope.records import CriticalTimes, HeldMemory, Numbers, Why
from deepscope.records.ranks import merge_profiles
from deepscope.report.json_csv import csv_report, json_report, report_object
from deepscope.report.tables import TABLES

NUMBERS = dict.fromkeys(Numbers.__struct_fields__, int)
TOP = [{"name": str, "label": str, "device_ns": int, "count": int}]
SPREAD = ({"min_ns": int, "min_rank": int, "median_ns": int, "max_ns": int, "max_rank": int}, None)
RATE = {"dtype": str, "intensity": int, "device_ns": int, "flops": int, "moved_bytes": int}
WHY = {**{name: int for name in Why.__struct_fields__ if name != "rates"}, "rates": [RATE]}
COST = {"share": float, "cost_per_step_ns": float}
LINE = {
    **NUMBERS,
    **COST,
    "file": str,
    "line": int,
    "function": str,
    "exact": bool,
    "of_loop": bool,
    "fused": bool,
    "shared_with": [{"file": str, "line": int, "shared_ns": int}],
    "in_compiled_region": bool,
    "slowed": bool,
    "text": (str, None),
    "top_operators": TOP,
    "top_kernels": TOP,
    "libraries": [
        {"module": str, "function": str, "operator": str, "device_ns": int, "include": str, "include_ns": int}
    ],
    "spread": SPREAD,
    "verdict": str,
    "why": WHY,
}
HELD = dict.fromkeys(HeldMemory.__struct_fields__, int)
HELD_BY_LINE = {**HELD, "file": str, "line": int, "function": str, "exact": bool}
CRITICAL = dict.fromkeys(CriticalTimes.__struct_fields__, int)
TABLE_ROWS: dict[str, Any] = {
    "functions": {**NUMBERS, **COST, "file": str, "line": int, "function": str, "exact": bool, "spread": SPREAD},
    "modules": {
        **NUMBERS, "path": str, "class_name": str, "parent": str, "children": [str], "depth": int,
        "total_backward_device_ns": int, "total_flops": int, "own_parameters": int, "parameters": int,
    },
    "operators": {
        "name": str, "label": str, "calls": int, "self_device_ns": int, "total_device_ns": int, "self_cpu_ns": int,
        "total_cpu_ns": int, "flops": int, "calls_without_flops": int, "verdict": str, "why": WHY,
        "moved_bytes": int, "allocated_bytes": int,
        "share": (float, None), "flops_per_s": (float, None), "bytes_per_s": (float, None),
        "tensor_core_self_ns": int, "tensor_core_total_ns": int, "tensor_core_eligible": bool,
    },
    "kernels": {
        "name": str, "label": str, "kind": str, "calls": int, "device_ns": int, "mean_ns": int, "max_ns": int,
        "operator": str, "file": str, "line": int, "min_ns": int, "uses_tensor_cores": bool, "grid": ([int], None),
        "block": ([int], None), "min_blocks": int, "max_blocks": int, "min_threads": int, "max_threads": int,
        "min_registers": int, "max_registers": int, "min_shared_memory_bytes": int, "max_shared_memory_bytes": int,
        "occupied_ns": int, "occupancy_known_ns": int, "sm_blocks_ns": int, "sm_blocks_known_ns": int,
        "launched": int, "delay_ns": int, "max_delay_ns": int, "queued": int,
    },
    "steps": {
        "number": int, "start_ns": int, "duration_ns": int, "device_ns": int, "busy_ns": int, "idle_ns": int,
        "wait_ns": int, "launches": int, "operators": int, "computing_ns": int, "communication_ns": int,
        "exposed_ns": int,
        "phases": {str: int}, "spread": SPREAD, "slow_file": str, "slow_line": int,
        "slow_function": str, "slow_ns": int,
    },
    "serving_steps": {
        "number": int, "phase": str, "requests": int, "tokens": (int, None), "start_ns": int, "duration_ns": int,
        "busy_ns": int, "idle_ns": int, "device_ns": int, "ranks": int, "token_ns": (float, None),
    },
    "overview": {
        "section": str, "device": str, "name": str, "time_ns": int, "whole_ns": int, "steps": int,
    },
    "run": {"section": str, "name": str, "time_ns": int, "whole_ns": int, "times": int},
    "threads": {
        "role": str, "number": int, "process": str, "thread": str, "name": str, "threads": int, "span_ns": int,
        "operator_ns": int, "runtime_ns": int, "python_ns": int, "annotation_ns": int, "rest_ns": int,
        "operators": int, "runtime_calls": int, "launches": int, "device_ns": int, "wait_ns": int,
    },
    "streams": {
        "device": int, "stream": int, "device_ns": int, "kernel_ns": int, "copy_ns": int, "fill_ns": int,
        "collective_ns": int, "kernels": int, "copies": int, "fills": int, "collectives": int, "busy_ns": int,
        "overlapped_ns": int, "idle_ns": int, "host_wait_ns": int, "kernel_wait_ns": int, "other_wait_ns": int,
    },
    "counters": {
        "counter": str, "series": str, "unit": str, "mean": float, "smallest": float, "largest": float,
        "samples": int, "covered_ns": int, "is_own": bool,
        "blocks": [{"block": int, "mean": float, "smallest": float, "largest": float, "covered_ns": int}],
    },
    "collectives": {
        "kind": str, "library": str, "group": str, "group_description": str, "group_ranks": str, "group_size": int,
        "dtype": str, "size_class_bytes": int, "on_device": bool, "calls": int, "outside_calls": int,
        "time_ns": int, "bytes": int, "bytes_known_ns": int, "bus_bytes": int, "bus_known_ns": int, "exposed_ns": int,
        "min_ns": int, "max_ns": int, "ranks": int,
        "algorithm_bytes_per_s": (int, None), "bus_bytes_per_s": (int, None), "transfer_ns": (int, None),
        "wait_ns": (int, None),
    },
    "phases": {"name": str, "wall_ns": int, "device_ns": int, "calls": int},
    "memory_by_line": HELD_BY_LINE,
    "critical_lines": {
        **CRITICAL, "file": str, "line": int, "function": str, "exact": bool, "critical_ns": int,
        "would_shorten_ns": (int, None),
    },
}  # fmt: skip
FILTERS = {
    "phase": str, "module": str, "include": [str], "exclude": [str], "min_time_ns": int, "whole_device_ns": int,
    "whole_wall_ns": int,
}  # fmt: skip
REPORT = {
    "format": int,
    "metric": str,
    "verdict": {"cause": str, "share": (float, None), "sentence": str, "file": str, "line": int},
    "step": (int, None),
    "filters": (FILTERS, None),
    "trace": {
        "path": str, "paths": [str], "ranks": [int], "world_size": int, "process_groups": int, "device": str,
        "device_count": int,
        "hostname": str, "recorded_at": str, "stage": str, "window": int, "project_root": str,
        "git_commit": str, "git_dirty": bool, "python": str, "torch": str, "lightning": str, "deepscope": str,
        "line_source": str, "truncated": bool, "program": str, "arguments": str, "warnings": [str], "recording": dict,
        "also_recorded": [str],
    },
    "totals": {
        "device_ns": int, "busy_ns": int, "idle_ns": int, "wall_ns": int, "wait_ns": int, "steps": int, "launches": int,
        "operators": int, "peak_bytes": int, "flops": int, "recording_ns": int, "added_ns": int, "behind_ns": int,
        "worker_ns": int, "worker_cpu_ns": int, "compiled_at_call_ns": int, "ranks": int,
    },
    "peaks": ({"name": str, "flops_per_s": {str: float}, "memory_bytes_per_s": float, "source": str}, None),
    "resolved": {"line_ns": int, "function_ns": int, "module_ns": int, "none_ns": int, "ratio": float},
    "figures": {
        "steps": int, "step_ns": (float, None), "device_step_ns": (float, None),
        "busy_share": (float, None), "idle_share": (float, None),
        "waiting_per_step_ns": float, "waiting_share": float, "recording_ns": int, "recording_share": float,
        "cost_ns": int,
    },
    "lines": [LINE],
    "no_line": NUMBERS,
    "framework": [{"framework": str, "part": str, "file": str, "line": int, "cost_ns": int}],
    "serving": [
        {
            "phase": str, "steps": int, "duration_ns": int, "device_ns": int, "requests": int, "tokens": int,
            "steps_without_tokens": int, "mean_steps": float, "step_ns": (float, None), "p50_ns": (int, None),
            "p95_ns": (int, None), "device_step_ns": (float, None),
            "requests_a_step": (float, None), "tokens_a_step": (float, None), "token_ns": (float, None),
        }
    ],
    "memory": {
        "devices": [
            {
                "device": str, "peak": HELD, "largest_peak_bytes": int, "peak_at_ns": int, "capacity_bytes": int,
                "curve": [{"at_ns": int, "allocated_bytes": int, "reserved_bytes": int}],
            },
        ],
        "owners_known": bool,
        "failure": (
            {
                "error": str, "message": str, "device": str, "at_ns": int, "held": HELD, "lines": [HELD_BY_LINE],
            },
            None,
        ),
    },
    "critical": {
        **CRITICAL, "steps": int, "evaluated_steps": int, "critical_ns": int, "others": CRITICAL, "no_line": CRITICAL,
    },
    "findings": [
        {
            "code": str, "title": str, "severity": str, "file": str, "line": int, "function": str, "message": str,
            "evidence": dict, "saving_ns": int, "is_measured": bool, "doc": str,
            "remedy": {"text": str, "edits": [{"line": int, "old": str, "new": str}]},
        },
    ],
    "tries": [
        {
            "finding": str, "remedy": str, "before_ns": float, "after_ns": float, "speedup": float, "interval": list,
            "verdict": str, "reason": str, "losses": str,
        },
    ],
    "counts": {str: int},
}  # fmt: skip


STEP_TIMES = {
    **dict.fromkeys(("count", "mean_ns", "min_ns", "p50_ns", "p90_ns", "p95_ns", "p99_ns", "max_ns", "slowest"), int),
    "file": str, "line": int, "function": str, "excess_ns": int,
}  # fmt: skip


def check(value: Any, shape: Any, place: str = "") -> None:
    """Asserts that `value` has exactly the keys and types of `shape`."""
    if isinstance(shape, tuple):
        if value is not None:
            check(value, shape[0], place)
    elif isinstance(shape, list):
        assert isinstance(value, list), place
        for item in value:
            check(item, shape[0], f"{place}[]")
    elif isinstance(shape, dict):
        assert isinstance(value, dict), place
        if set(shape) == {str}:
            shape = dict.fromkeys(value, shape[str])
        assert set(value) == set(shape), place
        for key, inner in shape.items():
            check(value[key], inner, f"{place}.{key}")
    else:
        assert type(value) is shape, f"{place}: {value!r}"


@pytest.mark.parametrize("by", TABLES)
def test_the_report_has_exactly_the_documented_keys_and_types(by: str) -> None:
    merged = merge_profiles([built_profiles.training(), built_profiles.training()])
    memory = built_profiles.out_of_memory(), built_profiles.with_memory()
    for profile in (built_profiles.training(), built_profiles.cpu_only(), built_profiles.hostile(), merged, *memory):
        report = json.loads(json_report(profile, by=by))
        key = TABLES[by].key
        more = {"step_times": (STEP_TIMES, None)} if by == "step" else {}
        check(report, REPORT | more | ({} if key == "lines" else {key: [TABLE_ROWS[key]]}))
        assert report["format"] == 1


def test_every_key_stands_in_the_documentation(repository: Path) -> None:
    documented = set(re.findall(r"`(\w+)`", (repository / "docs" / "report.md").read_text(encoding="utf-8")))

    def keys(shape: Any) -> set[str]:
        if isinstance(shape, dict):
            return {key for key in shape if isinstance(key, str)}.union(*map(keys, shape.values()))
        return keys(shape[0]) if isinstance(shape, (list, tuple)) else set()

    assert keys({**REPORT, **TABLE_ROWS, "step_times": STEP_TIMES}) - documented == set()


def test_the_lines_are_all_there_by_their_cost() -> None:
    profile = built_profiles.training()
    report = json.loads(json_report(profile, by="operator"))
    costs, selves = ([line[key] for line in report["lines"]] for key in ("cost_ns", "self_device_ns"))
    assert costs == sorted(costs, reverse=True)
    assert sum(selves) + report["no_line"]["self_device_ns"] == report["totals"]["device_ns"]


def test_a_limit_bounds_every_table_and_the_counts_say_how_many_there_are() -> None:
    profile = built_profiles.training()
    report = json.loads(json_report(profile, by="operator", sort="calls", limit=1))
    assert [row["name"] for row in report["operators"]] == ["aten::addmm"]
    assert [len(report[key]) for key in ("lines", "findings")] == [1, 1]
    assert report["findings"][0]["saving_ns"] == max(one.saving_ns for one in profile.findings)
    whole = json.loads(json_report(profile, by="operator"))
    assert report["counts"] == whole["counts"] == {key: len(whole[key]) for key in ("lines", "findings", "operators")}
    assert len(json.loads(json_report(profile, limit=2))["lines"]) == 2


def test_a_limited_memory_curve_keeps_its_peak() -> None:
    profile = built_profiles.with_memory()
    whole, limited = (json.loads(json_report(profile, limit=limit))["memory"]["devices"] for limit in (0, 1))
    for device, short in zip(whole, limited, strict=True):
        assert short["curve"] == [max(device["curve"], key=lambda point: point["allocated_bytes"])]


def test_no_name_reaches_the_terminal_as_an_escape() -> None:
    text = json_report(built_profiles.hostile())
    assert text.isascii()
    assert all(character.isprintable() or character == "\n" for character in text)
    assert json.loads(text)["lines"][0]["function"] == built_profiles.hostile().lines[0].function


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
