from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth as cell_len

from deepscope.report.terminal import TextColumn, cut_end, cut_start, render


@given(st.text(alphabet=st.characters(blacklist_categories=["C", "M"])), st.integers(1, 30))
def test_a_cut_text_is_never_wider_than_asked(text: str, width: int) -> None:
    for cut in (cut_end, cut_start):
        shown = cut(text, width)
        assert cell_len(shown) <= width
        assert shown == text or "…" in shown


def test_a_cut_path_keeps_its_end_and_starts_at_a_folder() -> None:
    assert cut_start("packages/nets/model.py:42", 18) == "…/nets/model.py:42"
    assert cut_start("train_transformer.py:88", 12) == "…ormer.py:88"
    assert cut_end("漢字漢字", 5) == "漢字…"


def test_columns_leave_by_their_rank_and_the_texts_take_the_room() -> None:
    columns = [
        TextColumn("self", ["1ms"]),
        TextColumn("wait", ["2ms"], rank=2),
        TextColumn("idle", ["3ms"], rank=1),
        TextColumn("none", [""], rank=1),
        TextColumn("source", ["x" * 50], right=False, min_width=10),
    ]
    assert render(columns, 24) == ["self  idle  source", " 1ms   3ms  xxxxxxxxxxx…"]
    assert render(columns, 28) == ["self  wait  idle  source", " 1ms   2ms   3ms  xxxxxxxxx…"]
    assert render(columns, 16) == ["self  source", " 1ms  xxxxxxxxx…"]


def test_wide_characters_do_not_shift_the_columns_after_them() -> None:
    columns = [TextColumn("name", ["漢字", "ab"], right=False), TextColumn("n", ["1", "2"])]
    assert render(columns, 20) == ["name  n", "漢字  1", "ab    2"]
