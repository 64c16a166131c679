"""Which line is which: over edits, moves, renamed files and other machines."""

from __future__ import annotations

import pytest

from deepscope.comparison import pairing
from deepscope.comparison.pairing import pair_files, pair_lines, relative_path
from deepscope.records import Line, Numbers, Profile, Resolved, SourceFile, Totals, TraceInfo
from deepscope.records.source_files import source_lines
from deepscope.remap import diff

TEXT = """import torch


def augment(batch):
    noise = torch.randn_like(batch)
    return batch + noise


def train(net, batch):
    batch = augment(batch)
    loss = net(batch).mean()
    loss.backward()
    return loss.item()
"""
MEASURED = (5, 6, 10, 11, 12, 13)


def profile(texts: dict[str, tuple[str | None, tuple[int, ...]]], root: str = "/job") -> Profile:
    """Files by path: their text, and the numbers of the lines that were measured."""
    lines = []
    for path, (text, numbers) in texts.items():
        rows = (text or TEXT).split("\n")
        for number in numbers:
            function = "augment" if "noise" in rows[number - 1] else "train"
            lines.append(
                Line(file=path, line=number, function=function, exact=True, self_device_ns=5,
                     text=None if text is None else rows[number - 1])
            )  # fmt: skip
    return Profile(
        metric="device",
        trace=TraceInfo(path="/runs/a.json", project_root=root),
        totals=Totals(device_ns=0, busy_ns=0, idle_ns=0, wall_ns=0, wait_ns=0, steps=0, launches=0, operators=0),
        lines=lines,
        no_line=Numbers(),
        resolved=Resolved(),
        files={path: SourceFile(text=text, sha256=str(hash(text))) for path, (text, _) in texts.items()},
    )


def pairs(old: Profile, new: Profile) -> dict[tuple[str, int], tuple[str, int]]:
    found = pair_lines(old, new)
    assert len(set(found.values())) == len(found)
    places = [[(relative_path(one.file, p.trace.project_root), one.line) for one in p.lines] for p in (old, new)]
    return {places[0][here]: places[1][there] for here, there in found.items()}


def one_file(text: str | None, numbers: tuple[int, ...], path: str = "/job/train.py", root: str = "/job") -> Profile:
    return profile({path: (text, numbers)}, root)


OLD = one_file(TEXT, MEASURED)


def numbers(found: dict[tuple[str, int], tuple[str, int]]) -> dict[int, int]:
    return {old[1]: new[1] for old, new in found.items()}


def test_the_same_text_is_the_same_lines_wherever_the_project_lies() -> None:
    elsewhere = one_file(TEXT, MEASURED, "/else/where/train.py", "/else/where")
    assert numbers(pairs(OLD, elsewhere)) == {line: line for line in MEASURED}
    windows = one_file(TEXT, MEASURED, "C:\\job\\train.py", "C:\\job")
    assert numbers(pairs(OLD, windows)) == {line: line for line in MEASURED}


def test_an_edit_above_moves_lines() -> None:
    new = one_file("# more\n# and more\n" + TEXT, tuple(line + 2 for line in MEASURED))
    assert numbers(pairs(OLD, new)) == {line: line + 2 for line in MEASURED}


def test_a_function_that_was_moved_takes_its_lines_along() -> None:
    head, augment, train = TEXT.split("\n\n\n")
    moved = "\n\n\n".join([head, train.rstrip("\n"), augment + "\n"])
    at = {text: number for number, text in enumerate(moved.split("\n"), 1)}
    old = TEXT.split("\n")
    new = one_file(moved, tuple(at[old[line - 1]] for line in MEASURED))
    assert numbers(pairs(OLD, new)) == {line: at[old[line - 1]] for line in MEASURED}


def test_a_line_that_was_deleted_has_no_partner_and_none_takes_its_place() -> None:
    shorter = TEXT.replace("    loss.backward()\n", "")
    new = one_file(shorter, (5, 6, 10, 11, 12))
    assert numbers(pairs(OLD, new)) == {5: 5, 6: 6, 10: 10, 11: 11, 13: 12}


def test_a_line_that_was_edited_is_still_the_line() -> None:
    new = one_file(TEXT.replace("net(batch).mean()", "net(batch).float().mean()"), MEASURED)
    assert numbers(pairs(OLD, new)) == {line: line for line in MEASURED}


def test_a_file_that_was_renamed_keeps_its_lines() -> None:
    new = one_file("# renamed\n" + TEXT, tuple(line + 1 for line in MEASURED), "/job/other/fit.py")
    assert pairs(OLD, new) == {("train.py", line): ("other/fit.py", line + 1) for line in MEASURED}


def test_a_function_that_went_to_another_file_is_found_there() -> None:
    head, augment, train = TEXT.split("\n\n\n")
    new = profile({
        "/job/train.py": ("\n\n\n".join([head, train]), (5, 6, 7, 8)),
        "/job/data.py": (f"{head}\n\n\n{augment}\n", (5, 6)),
    })  # fmt: skip
    found = pairs(OLD, new)
    assert {old[1]: new for old, new in found.items()} == {
        5: ("data.py", 5), 6: ("data.py", 6), 10: ("train.py", 5), 11: ("train.py", 6), 12: ("train.py", 7),
        13: ("train.py", 8),
    }  # fmt: skip


def test_without_texts_function_and_number_decide() -> None:
    old, new = (one_file(None, lines) for lines in ((5, 6, 10, 11), (5, 10, 12)))
    assert numbers(pairs(old, new)) == {5: 5, 10: 10}


def test_another_program_shares_nothing() -> None:
    other = "\n".join(f"value_{number} = compute_{number}(x)" for number in range(20))
    assert pairs(OLD, one_file(other, (3, 4, 5), "/job/else.py")) == {}


def test_the_text_of_each_file_is_looked_at_once_however_many_files_have_other_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def many(root: str) -> Profile:
        texts = {f"{root}_{file}": [f"{root}_{file}_{line} = call({line})" for line in range(3)] for file in range(9)}
        return profile({f"/job/{file}.py": ("\n".join(lines), (1,)) for file, lines in texts.items()})

    seen: list[str] = []

    def counted(text: str) -> list[str]:
        seen.append(text)
        return source_lines(text)

    for module in (pairing, diff):
        monkeypatch.setattr(module, "source_lines", counted)
    assert pair_files(many("old"), many("new")) == {}
    assert len(seen) == len(set(seen)) == 18


@pytest.mark.parametrize("path", ["", "\x00", "../../etc", "\ud800.py", "a" * 5000, "<ipython-input-3-a>"])
def test_hostile_names_are_names(path: str) -> None:
    hostile = one_file(TEXT, MEASURED, path)
    assert numbers(pairs(hostile, hostile)) == {line: line for line in MEASURED}
    pair_lines(OLD, hostile)
