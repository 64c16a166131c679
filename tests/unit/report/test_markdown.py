"""Names from a trace in Markdown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepscope.report import markdown


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("[x](command:evil)", r"\[x\](command:evil)"),
        ("<img src=x onerror=alert(1)>", r"\<img src=x onerror=alert(1)\>"),
        ("**bold** _it_ `code`", r"\*\*bold\*\* \_it\_ \`code\`"),
        ("https://evil.example", r"https:\//evil.example"),
        ("www.evil.example", r"www\.evil.example"),
        ("a|b&amp;~c$", r"a\|b\&amp;\~c\$"),
        ("# heading", r"\# heading"),
        ("- item", r"\- item"),
        ("a\nb\x1b[0m\u202e", r"a\\nb\\x1b\[0m\\u202e"),
    ],
)
def test_markup_in_a_name_shows_as_its_letters(text: str, escaped: str) -> None:
    assert markdown.plain(text) == escaped


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("aten::mm", "`aten::mm`"),
        ("a`b", "``a`b``"),
        ("`", "`` ` ``"),
        ("a|b", r"a\|b"),
        ("  ", ""),
        ("a\nb", r"`a\nb`"),
    ],
)
def test_code_cannot_be_left(text: str, shown: str) -> None:
    assert markdown.code(text) == shown


@given(st.text(max_size=300))
def test_nothing_from_outside_starts_a_new_line(text: str) -> None:
    for shown in (markdown.plain(text), markdown.code(text), markdown.link(text, "file:///a b/ü.py", 3)):
        assert "\n" not in shown
        assert "\r" not in shown
        assert len(shown) < 1500


def test_a_link_holds_no_character_that_would_end_it() -> None:
    assert markdown.link("x", "file:///a (b)/ü.py", 7) == "[x](file:///a%20%28b%29/%C3%BC.py#L7)"
