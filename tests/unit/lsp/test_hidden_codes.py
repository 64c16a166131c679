"""What an entry of `diagnostics.hide` hides."""

import pytest

from deepscope_lsp.engine.project import hides, hiding_entry

FILE, TEXT = "/job/model/net.py", "    total += loss.item()  # a: b"


@pytest.mark.parametrize(
    ("entry", "is_hidden"),
    [
        ("DS001", True),
        ("DS002", False),
        ("DS001:model/net.py", True),
        ("DS001:net.py", True),
        ("DS001:other/net.py", False),
        ("DS001:model/net.py:total += loss.item()  # a: b", True),
        ("DS001:model/net.py:total += loss", False),
        ("DS002:model/net.py:total += loss.item()  # a: b", False),
        ("", False),
        (":", False),
    ],
)
def test_an_entry_hides_everywhere_in_a_file_or_on_a_line(entry: str, is_hidden: bool) -> None:
    assert hides(entry, "DS001", FILE, TEXT) is is_hidden


def test_paths_of_windows_have_a_colon_of_their_own() -> None:
    file = "C:\\job\\model\\net.py"
    assert hides("DS001:C:\\job\\model\\net.py", "DS001", file, TEXT)
    assert not hides("DS001:D:\\job\\model\\net.py", "DS001", file, TEXT)
    assert hides("DS001:c:/job/model/net.py:" + TEXT, "DS001", file, TEXT)


@pytest.mark.parametrize(
    ("file", "text", "entry"),
    [
        (None, "", "DS001"),
        (FILE, "", "DS001:model/net.py"),
        (FILE, TEXT, "DS001:model/net.py:total += loss.item()  # a: b"),
        ("C:\\job\\model\\net.py", "x", "DS001:model/net.py:x"),
    ],
)
def test_what_is_hidden_is_written_as_an_entry_that_hides_it(file: str | None, text: str, entry: str) -> None:
    assert hiding_entry("DS001", file, text) == entry
    assert hides(entry, "DS001", file or "/any.py", text)


def test_a_blank_line_is_no_line_to_hide_on() -> None:
    assert not hides("DS001:net.py:", "DS001", FILE, "")
