"""Products with a weight whose rows repeat, as the audit of real steps finds them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from audited_programs import looked_at_all, text_at, training
from deepscope.capture.audit.step_audit import Audited
from deepscope.trace.format.audit import CheaperOperator

pytestmark = pytest.mark.usefixtures("nothing_compiled")

NODES, WIDTH = 100, 32
FIRST, SECOND = torch.randint(NODES, (2, 20 * NODES), generator=torch.Generator().manual_seed(0))

Loss = Callable[[torch.Tensor, nn.Linear], torch.Tensor]


def of_nodes(loss: Loss, *, features: int = 2 * WIDTH, nodes: int = NODES, into: int = 32) -> Audited:
    """Steps with a layer for nodes in front, and one for what is made of their features; shape (nodes, 32)."""
    front, layer = nn.Linear(16, WIDTH), nn.Linear(features, into)
    return looked_at_all(
        training(nn.ModuleList([front, layer]), lambda: loss(torch.relu(front(torch.randn(nodes, 16))), layer))
    )


def repeated_in(found: Audited) -> list[CheaperOperator]:
    return [one for one in found.account.cheaper if one.kind == "repeated_rows"]


def mean(x: torch.Tensor) -> torch.Tensor:
    return x.square().mean()


def test_a_layer_for_the_features_of_both_nodes_of_edges():
    def loss(h: torch.Tensor, layer: nn.Linear) -> torch.Tensor:
        pair = torch.cat([h[FIRST], h[SECOND]], dim=-1)
        return layer(pair).square().mean()

    found = of_nodes(loss)
    (one,) = repeated_in(found)
    assert text_at(found, one.place) == "return layer(pair).square().mean()"
    assert (one.shape, one.different, one.times, one.module) == ([20 * NODES, 32], NODES, 1, "")
    assert 0.05 <= one.needed < 0.5
    assert {use.name for use in one.operators if use.unused} == {"aten::addmm", "aten::cat"}
    assert [use.unused for use in one.backward if use.name == "aten::mm"] == [2]


@pytest.mark.parametrize(
    "loss",
    [
        lambda h, layer: mean(layer(torch.cat([h.index_select(0, FIRST), h.index_select(0, SECOND)], 1))),
        lambda h, layer: mean(torch.cat([F.embedding(FIRST, h), h[SECOND]], 1) @ layer.weight.mT),
        lambda h, layer: mean(layer(torch.stack([h[FIRST], h[SECOND]], 1).flatten(1))),
        lambda h, layer: mean(layer(h[torch.stack([FIRST, SECOND], 1)].flatten(1))),
        lambda h, layer: mean(layer(torch.cat([h[FIRST], h[SECOND]], 1)[SECOND.sort()[1]])),
        lambda h, layer: mean(nn.Sequential(layer, nn.ReLU())(torch.cat([h[FIRST], h[SECOND]], 1))),
        lambda h, layer: mean(layer(torch.cat([h.gather(0, FIRST[:, None].expand(-1, WIDTH)), h[SECOND]], 1))),
        lambda h, layer: mean(layer(torch.cat([h.repeat(20, 1), h.repeat_interleave(20, 0)], 1))),
        lambda h, layer: mean(layer(torch.cat([h[:, None].expand(-1, NODES, -1), h[None].expand(NODES, -1, -1)], -1))),
        lambda h, layer: mean(torch.einsum("eu,vu->ev", torch.cat([h[FIRST], h[SECOND]], 1), layer.weight)),
    ],
)
def test_other_ways_to_gather_and_to_multiply(loss: Loss):
    (one,) = repeated_in(of_nodes(loss))
    assert one.different == NODES


def test_rows_that_are_expanded_are_copied_by_the_product_alone():
    (one,) = repeated_in(of_nodes(lambda h, layer: mean(layer(h.expand(20, -1, -1))), features=WIDTH))
    assert one.different == NODES
    assert one.needed < 0.1  # nothing is gathered, and nothing added


def test_features_of_the_edges_beside_them_are_left():
    edges = torch.randn(20 * NODES, WIDTH)
    both = of_nodes(lambda h, layer: mean(layer(torch.cat([h[FIRST], h[SECOND]], 1))))
    beside = of_nodes(lambda h, layer: mean(layer(torch.cat([h[FIRST], h[SECOND], edges], 1))), features=3 * WIDTH)
    assert repeated_in(both)[0].needed + 0.15 < repeated_in(beside)[0].needed < 0.6


def test_under_autocast():
    def loss(h: torch.Tensor, layer: nn.Linear) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return layer(torch.cat([h[FIRST], h[SECOND]], 1)).float().square().mean()

    assert len(repeated_in(of_nodes(loss))) == 1


def test_two_layers_for_the_same_pairs_copy_these_once():
    def loss(h: torch.Tensor, layer: nn.Linear) -> torch.Tensor:
        pair = torch.cat([h[FIRST], h[SECOND]], dim=-1)
        return mean(layer(pair) * torch.sigmoid(F.linear(pair, layer.weight)))

    (one,) = repeated_in(of_nodes(loss))
    assert (one.times, sum(use.unused for use in one.operators if use.name == "aten::cat")) == (2, 1)


def test_pairs_that_are_read_otherwise_too_are_joined_nevertheless():
    def loss(h: torch.Tensor, layer: nn.Linear) -> torch.Tensor:
        pair = torch.cat([h[FIRST], h[SECOND]], dim=-1)
        return mean(layer(pair)) + pair.abs().mean()

    (one,) = repeated_in(of_nodes(loss))
    assert sum(use.unused for use in one.operators if use.name == "aten::cat") == 0


def test_wide_results_cost_more_to_gather_than_narrow_ones_to_compute():
    assert not repeated_in(of_nodes(lambda h, layer: mean(layer(h[FIRST])), features=WIDTH, into=8 * WIDTH))


@pytest.mark.parametrize(
    "change",
    [
        lambda h, pair: torch.relu(pair),
        lambda h, pair: pair + torch.randn(20 * NODES, 2 * WIDTH),
        lambda h, pair: F.dropout(pair, 0.1),
        lambda h, pair: pair.add_(1),
        lambda h, pair: pair.view(40, NODES, WIDTH).mT.reshape(20 * NODES, 2 * WIDTH),
        lambda h, pair: pair.mT.contiguous().view(20 * NODES, 2 * WIDTH),
        lambda h, pair: torch.cat([pair[:, 1:], pair[:, :1]], 1),
        lambda h, pair: pair[: 2 * NODES - 1],  # fewer than twice as many
        lambda h, pair: torch.cat([h, h], 1)[torch.randperm(NODES)[:64]],
    ],
)
def test_rows_that_differ_and_rows_that_are_few_are_none(change: Callable[..., torch.Tensor]):
    def loss(h: torch.Tensor, layer: nn.Linear) -> torch.Tensor:
        pair = torch.cat([h[FIRST], h[SECOND]], dim=-1)
        return mean(layer(change(h, pair)))

    assert repeated_in(of_nodes(loss)) == []


def test_words_of_a_large_table_are_none_and_of_a_small_one_repeat():
    def of_table(words: int) -> list[CheaperOperator]:
        model = nn.Sequential(nn.Embedding(words, 64), nn.Linear(64, 64))
        return repeated_in(looked_at_all(training(model, lambda: mean(model(torch.randint(words, (16, 64)))))))

    assert of_table(5_000) == []
    (one,) = of_table(50)
    assert one.different == 50


def test_what_a_recurrent_layer_and_attention_multiply_is_not_the_users():
    words = nn.Embedding(20, 64)
    recurrent, attention = nn.LSTM(64, 64, batch_first=True), nn.MultiheadAttention(64, 4, batch_first=True)

    def loss() -> torch.Tensor:
        x = words(torch.randint(20, (16, 32)))
        return mean(recurrent(x)[0]) + mean(attention(x, x, x, need_weights=False)[0])

    assert repeated_in(looked_at_all(training(nn.ModuleList([words, recurrent, attention]), loss))) == []


def test_another_weight_for_each_copy_is_none():
    def loss(h: torch.Tensor, layer: nn.Linear) -> torch.Tensor:
        return mean(torch.bmm(h.expand(20, -1, -1), layer.weight.view(20, 8, WIDTH).mT))

    assert repeated_in(of_nodes(loss, features=WIDTH, into=20 * 8)) == []


def test_products_without_a_weight_and_heads_of_attention_are_none():
    def loss(h: torch.Tensor, layer: nn.Linear) -> torch.Tensor:
        q, k, v = layer(torch.cat([h, h], 1)).view(10, NODES // 10, 4, 8).transpose(1, 2).expand(3, -1, -1, -1, -1)
        return mean(F.scaled_dot_product_attention(q, k, v)) + mean(h[FIRST] @ h.mT)

    assert repeated_in(of_nodes(loss)) == []


@pytest.mark.filterwarnings("ignore:Sparse CSR", "ignore:Sparse invariant")
def test_sparse_and_empty_factors_are_passed_over():
    places, ones = torch.stack([FIRST, SECOND]), torch.ones(20 * NODES)
    edges = torch.sparse_coo_tensor(places, ones, (NODES, NODES), check_invariants=True).coalesce()
    compressed = edges.to_sparse_csr()

    def loss(h: torch.Tensor, layer: nn.Linear) -> torch.Tensor:
        empty = layer(torch.cat([h[FIRST[:0]], h[:0]], 1)).sum() + F.linear(h[FIRST], layer.weight[:0, :WIDTH]).sum()
        return mean(edges @ layer.weight) + mean(compressed @ layer.weight) + empty

    assert repeated_in(of_nodes(loss, into=NODES)) == []
