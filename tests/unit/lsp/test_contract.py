"""The extension's words for times and shares are the server's."""

import json
from pathlib import Path

import pytest

from deepscope_lsp.engine.wording import quantities

EXTENSION = Path(__file__).parents[3] / "vscode-extension"
CASES = json.loads((EXTENSION / "test" / "durations.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("duration_ns", "words"), CASES["durations"])
def test_the_page_words_sums_of_times_as_the_server_words_times(duration_ns: float, words: str) -> None:
    assert quantities.duration(duration_ns) == words


@pytest.mark.parametrize(("ratio", "words"), CASES["shares"])
def test_the_page_words_shares_as_the_server_does(ratio: float, words: str) -> None:
    assert quantities.share(ratio) == words
