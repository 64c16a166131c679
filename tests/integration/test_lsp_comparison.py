"""Did my change help: each new run beside the one before it, with the editor as the only witness."""

from pathlib import Path
from typing import Any

from lsp_editor import Editor, editing, run
from lsp_profiles import NET, SOURCE, record

QUICK = {"watchSeconds": 0.4}
OTHER = SOURCE.replace("return y.relu()", "pass")


def recorded(root: Path, number: int, program: str = "train.py", **more: Any) -> Path:
    """The run of a minute."""
    time = f"2026-01-02T03:{number:02d}:00+00:00"
    name = f"w.fit.rank0.{1_760_000_000_000_000_000 + number}.pt.trace.json"
    return record(root, name=name, run_id=f"run-{number}", recorded_at=time, program=program, **more)


async def until_compared(editor: Editor, new: Path, old: Path | None) -> dict[str, Any]:
    def is_shown() -> bool:
        last = editor.statuses[-1] if editor.statuses else {"trace": None, "baseline": None}
        baseline = last["baseline"]["path"] if last["baseline"] else None
        return bool(last["trace"]) and last["trace"]["path"] == str(new) and baseline == (str(old) if old else None)

    await editor.until(is_shown, f"{new} is shown beside {old}")
    return editor.statuses[-1]


def test_a_new_run_stands_beside_the_one_before_it(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        first = recorded(root, 1, scale=2)
        async with editing(root, cache=tmp_path / "cache", settings=QUICK) as editor:
            uri = editor.open(root / "train.py")
            await until_compared(editor, first, None)
            second = recorded(root, 2)
            status = await until_compared(editor, second, first)
            # One step tells of no spread, and these traces have no hashes of files.
            assert status["comparison"] == {"isChosen": False, "stepsDiffer": None, "isSameCode": None}
            assert status["stepTimeWords"] == "step 400 → 200 µs, -50 %"
            assert status["remarks"] == [{"words": "noise unknown", "detail": ""}]
            assert (status["baseline"]["stepNs"], status["trace"]["stepNs"]) == (400_000, 200_000)
            hot = await editor.command("hotLines", limit=1)
            assert (hot["lines"][0]["baselineNs"], hot["lines"][0]["perStepNs"]) == (180_000, 90_000)
            assert hot["vanished"] == []
            assert (await editor.hints(uri))[NET["project"]] == "38 µs · 19 %"  # no change at each line unasked

    run(scenario())


def test_a_line_that_is_gone_since_the_run_before_is_listed_with_its_time(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        first = recorded(root, 1)
        async with editing(root, cache=tmp_path / "cache", settings=QUICK) as editor:
            await until_compared(editor, first, None)
            (root / "train.py").write_text(OTHER, encoding="utf-8")
            await until_compared(editor, recorded(root, 2, text=OTHER), first)
            (gone,) = (await editor.command("hotLines"))["vanished"]
            assert (gone["text"], gone["line"], gone["perStepNs"]) == ("return y.relu()", NET["relu"], 15_000)
            assert gone["uri"] == (root / "train.py").as_uri()

    run(scenario())


def test_a_run_of_another_program_is_passed_over(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        first = recorded(root, 1)
        recorded(root, 2, program="evaluate.py")
        third = recorded(root, 3)
        async with editing(root, cache=tmp_path / "cache", settings=QUICK) as editor:
            # The first was never read: that happens while the third is looked at.
            await until_compared(editor, third, first)
            fourth = recorded(root, 4, program="other.py")
            await until_compared(editor, fourth, None)

    run(scenario())


def test_runs_that_share_no_more_than_a_name_are_not_compared(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        first = recorded(root, 1)
        recorded(root, 2, arguments="f00dcafe")
        recorded(root, 3, text="".join(f"somebody_elses({number})\n" for number in range(20)))
        recorded(root, 4, project_root="/home/somebody/else")
        recorded(root, 5, program="")
        sixth = recorded(root, 6)
        async with editing(root, cache=tmp_path / "cache", settings=QUICK) as editor:
            await until_compared(editor, sixth, first)  # what lies between was read in vain, or not at all
            await until_compared(editor, recorded(root, 7, arguments=""), None)

    run(scenario())


def test_a_baseline_that_was_chosen_stays_and_no_comparison_stays_none(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        first = recorded(root, 1)
        async with editing(root, cache=tmp_path / "cache", settings=QUICK) as editor:
            await until_compared(editor, first, None)
            second = recorded(root, 2)
            await until_compared(editor, second, first)
            await editor.command("setBaseline", path=str(first))
            status = await until_compared(editor, recorded(root, 3), first)
            assert status["comparison"]["isChosen"]
            await editor.command("clearBaseline")
            await until_compared(editor, recorded(root, 4), None)

    run(scenario())
