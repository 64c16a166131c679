"""Layers that are alike become one row; those that differ in anything do not."""

from __future__ import annotations

from typing import Any

from deepscope.records import Module
from deepscope.report.module_tree import folded_modules


def module(path: str, class_name: str, parent: str = "", **numbers: Any) -> Module:
    return Module(path=path, class_name=class_name, parent=parent, **numbers)


def named(rows: list[Module]) -> list[tuple[str, str, int, int, int]]:
    return [
        (one.module.path, one.name, one.modules, one.parent, one.module.total_device_ns) for one in folded_modules(rows)
    ]


def test_layers_that_differ_in_their_number_alone_are_one() -> None:
    rows = [module("net", "Net", total_device_ns=60)]
    for layer in range(3):
        path = f"net.layers.{layer}"
        rows += [
            module(path, "Layer", "net", total_device_ns=20),
            module(f"{path}.mlp", "Linear", path, total_device_ns=15 - layer, own_parameters=8),
        ]
    assert named(rows) == [
        ("net", "net", 1, -1, 60),
        ("net.layers.*", "layers.*", 3, 0, 60),
        ("net.layers.*.mlp", "mlp", 3, 1, 42),
    ]


def test_another_class_or_other_parameters_or_other_children_keep_layers_apart() -> None:
    rows = [
        module("net", "Net"),
        module("net.0", "Linear", "net", own_parameters=8, total_device_ns=5),
        module("net.1", "ReLU", "net", total_device_ns=4),
        module("net.2", "Linear", "net", own_parameters=9, total_device_ns=3),
        module("net.3", "Block", "net", total_device_ns=2),
        module("net.4", "Block", "net", total_device_ns=1),
        module("net.4.inner", "Linear", "net.4"),
    ]
    assert [(path, times) for path, _, times, _, _ in named(rows)] == [(row.path, 1) for row in rows]


def test_without_paths_modules_of_a_class_are_one() -> None:
    rows = [
        module("Net_0", "Net"),
        module("Linear_0", "Linear", "Net_0", total_device_ns=2),
        module("Linear_7", "Linear", "Net_0", total_device_ns=1),
    ]
    assert named(rows) == [("Net_0", "Net_0", 1, -1, 0), ("Linear_*", "Linear_*", 2, 0, 3)]


def test_no_depth_is_too_deep() -> None:
    rows = [module("a", "A")]
    for _ in range(3000):
        rows.append(module(f"{rows[-1].path}.a", "A", rows[-1].path))
    assert len(folded_modules(rows)) == 3001
