"""Lines as Python and editors count them."""

import io
import tokenize

import pytest

from deepscope.records.source_files import source_lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a\r\nb\rc\n", ["a", "b", "c", ""]),
        ("a\fb\u2028c", ["a\fb\u2028c"]),
        ("a\x0bb\nc", ["a\x0bb", "c"]),
    ],
)
def test_lines_end_where_python_ends_them(text: str, lines: list[str]) -> None:
    assert source_lines(text) == lines


def test_a_line_after_a_form_feed_has_the_tokenizers_number() -> None:
    text = "a = 1\n\f\nb = '\x1c \u2029'\nc = 3\n"
    last = next(token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.string == "c")
    assert source_lines(text)[last.start[0] - 1] == "c = 3"
