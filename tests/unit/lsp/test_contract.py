"""The extension's side of the server's answers: the contract made from them, and the words that both know."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from deepscope_lsp.engine.wording import quantities

EXTENSION = Path(__file__).parents[3] / "vscode-extension"
CASES = json.loads((EXTENSION / "test" / "durations.json").read_text(encoding="utf-8"))


def test_the_extension_has_the_contract_of_this_server() -> None:
    check = subprocess.run(
        [sys.executable, str(EXTENSION / "contract.py"), "--check"], capture_output=True, text=True, timeout=120
    )
    assert (check.stderr, check.returncode) == ("", 0)


@pytest.mark.parametrize(("duration_ns", "words"), CASES["durations"])
def test_the_page_words_sums_of_times_as_the_server_words_times(duration_ns: float, words: str) -> None:
    assert quantities.duration(duration_ns) == words


@pytest.mark.parametrize(("ratio", "words"), CASES["shares"])
def test_the_page_words_shares_as_the_server_does(ratio: float, words: str) -> None:
    assert quantities.share(ratio) == words
