"""Lines that share kernels of torch.compile, as the reports show them."""

from __future__ import annotations

from typing import Any

import msgspec

import built_profiles
from deepscope.records import Partner, Profile
from deepscope.report.line_report import line_text
from deepscope.report.text_report import text_report


def profile(*, compiled_at_call_ns: int = 0, **changes: Any) -> Profile:
    """The training run, with changes to its first line."""
    whole = built_profiles.training()
    whole.lines[0] = msgspec.structs.replace(whole.lines[0], **changes)
    whole.totals.compiled_at_call_ns = compiled_at_call_ns
    return whole


def fused(**changes: Any) -> Profile:
    file = built_profiles.MODEL
    partners = [Partner(file, 43, 9), Partner(file, 17, 4)]
    return profile(exact=False, fused=True, shared_ns=50_000_000, shared_with=partners, **changes)


def words(text: str) -> str:
    return " ".join(text.split())


def test_a_line_of_fused_kernels_alone_has_its_mark_its_source_and_a_note() -> None:
    text = text_report(fused(), by="line", width=160)
    row = next(row for row in text.partition("\n\n")[2].splitlines() if "model.py:42" in row)
    assert row.split("model.py:42")[1].split()[0] == "f"
    assert "x = self.attention(" in row
    assert "def Net.forward" not in row
    assert "f has parts of kernels that were fused from several lines" in words(text)
    assert "the numbers of a whole function" not in text.split("Data.__getitem__")[0]


def test_the_report_says_how_to_have_the_lines_of_graphs_that_do_not_know_theirs() -> None:
    footer = words(text_report(fused(), by="line", width=160))
    assert "its kernels stand at the lines that they were made from" in footer
    assert "before code is compiled" not in footer
    at_call = words(text_report(fused(compiled_at_call_ns=7), by="line", width=160))
    assert "let DeepScope be there before code is compiled" in at_call
    assert "stand at the line of the call" in words(text_report(profile(), by="line", width=160))


def test_the_tree_of_a_line_says_what_it_was_fused_with() -> None:
    text = words(line_text(fused(), 0, width=160))
    assert "x = self.attention(x, mask=mask)" in text
    assert "50ms of it are parts of kernels that were fused with nets/model.py:43, nets/model.py:17" in text
