import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepscope.printable import printable, without_secrets
from deepscope.quantities import bytes_text, count_text, share_text, time_text


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (0, ""), (1, "1ns"), (999, "999ns"), (1_000, "1µs"), (1_234, "1.23µs"), (9_996, "10.0µs"), (99_960, "100µs"),
        (999_600, "1.00ms"), (12_345_678, "12.3ms"), (1_500_000_000, "1.50s"), (1_234_000_000_000, "1234s"),
        (-2_500_000, "-2.50ms"), (0.4, "0.40ns"),
    ],
)  # fmt: skip
def test_a_time_has_three_digits_and_its_unit(duration_ns: float, text: str) -> None:
    assert time_text(duration_ns) == text


def test_bytes_and_counts_have_their_units() -> None:
    assert bytes_text(3 << 20) == "3MiB"
    assert bytes_text(1536) == "1.50KiB"
    assert count_text(12_345) == "12,345"
    assert count_text(2 * 10**12) == "2T"
    assert count_text(0) == ""


def test_a_mean_of_counts_has_three_digits() -> None:
    assert [count_text(mean) for mean in (0.2857, 6.94, 12.34, 250.4, 3.0)] == ["0.286", "6.94", "12.3", "250", "3"]


def test_a_share_too_small_for_its_decimal_does_not_read_as_nothing() -> None:
    assert share_text(1, 10**6) == "<0.1%"
    assert share_text(0, 10) == ""
    assert share_text(1, 0) == ""
    assert share_text(1, 3) == "33.3%"


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left_in_a_name(text: str) -> None:
    assert printable(text).isprintable()


def test_letters_of_any_script_stay_as_they_are() -> None:
    assert printable("模型.py: größe(ß)") == "模型.py: größe(ß)"
    assert printable("a\tb\u00a0c") == "a b c"
    assert printable("\x1b[31m\u202e\n") == "\\x1b[31m\\u202e\\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://me:s3cret@h/a.json: no such file", "http://…@h/a.json: no such file"),
        ("https://token@h/a", "https://…@h/a"),
        ("sftp://me:p@ss@h/a", "sftp://me:…@h/a"),
        ("https://h/a.json?X-Sig=a%2Fb&c=d: cannot be read", "https://h/a.json?…: cannot be read"),
        ("Forbidden, url='https://h/a?sig=b'", "Forbidden, url='https://h/a?…'"),
        ("zip://a::https://me:p@h/b.zip?sig=c and 3 more", "zip://a::https://…@h/b.zip?… and 3 more"),
        ("(https://h/a?b=c), and", "(https://h/a?…), and"),
        *((one, one) for one in ("s3://a/b:c@d?e", "github://org:repo@main/a", "/a/b?c=d", "tcp://127.0.0.1:8786: x")),
    ],
)
def test_passwords_and_signatures_in_addresses_are_not_shown(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


def test_a_long_text_without_addresses_is_read_once() -> None:
    text = "://" + "a." * 400_000
    assert without_secrets(text) == text
