"""What `scripts/results` says of tests that failed beside others and were tried once more."""

import subprocess
import sys
from pathlib import Path

FIRST = """<testsuites><testsuite name="pytest">
<testcase classname="tests.a" name="passes"/>
<testcase classname="tests.a" name="fails"><failure message="no">a.py:3</failure></testcase>
<testcase classname="tests.a" name="fails_beside_others"><failure message="busy">a.py:9</failure></testcase>
<testcase classname="tests.a" name="skips"><skipped message="no device"/></testcase>
</testsuite></testsuites>"""
AGAIN = """<testsuites><testsuite name="pytest">
<testcase classname="tests.a" name="fails"><error message="no again">a.py:3</error></testcase>
<testcase classname="tests.a" name="fails_beside_others"/>
</testsuite></testsuites>"""


def results(repository: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(repository / "scripts" / "results"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_what_passed_alone_counts_as_passed_and_is_named_as_flaky(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "pytest.xml").write_text(FIRST)
    (tmp_path / "pytest-again.xml").write_text(AGAIN)
    done = results(repository, tmp_path, "pytest=Tests")
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert [line for line in lines if line.startswith("FLAKY")] == ["FLAKY: Tests: tests.a: fails_beside_others"]
    assert lines[-2:] == ["Tests: 2 passed, 1 failed, 1 skipped", "2 passed, 1 failed, 1 skipped"]
    assert "--- Tests, once more: tests.a: fails" in lines


def test_a_flaky_test_alone_fails_nothing_and_a_part_without_results_does(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "pytest.xml").write_text(FIRST)
    (tmp_path / "pytest-again.xml").write_text(AGAIN.replace("error", "system-out"))
    done = results(repository, "--brief", tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "3 passed, 0 failed, 1 skipped")
    assert "FLAKY: pytest: tests.a: fails_beside_others" in done.stdout
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "Other").write_text("Killed\n")
    done = results(repository, tmp_path, "pytest=Tests", "other/pytest=Other")
    assert done.returncode == 1
    assert "Other: did not run to its end" in done.stdout
    assert "Killed" in done.stdout
