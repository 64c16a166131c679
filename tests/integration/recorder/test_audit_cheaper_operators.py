"""Operators in place of which a cheaper one would do, as the audit of real steps finds them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from audited_programs import looked_at_all, text_at, training
from deepscope.capture.audit.step_audit import Audited

pytestmark = pytest.mark.usefixtures("nothing_compiled")


def found_in(found: Audited) -> list[tuple[str, str, str]]:
    """The line, the kind and the operator of each row."""
    assert not found.account.left_out
    return [(text_at(found, one.place), one.kind, one.name.removeprefix("aten::")) for one in found.account.cheaper]


def of_a_layer(loss: Callable[[torch.Tensor], torch.Tensor], rows: int = 64, width: int = 32) -> Audited:
    """Steps with a layer in front, whose output has this shape."""
    layer = nn.Linear(16, width)
    return looked_at_all(training(layer, lambda: loss(layer(torch.randn(rows, 16)))))


@pytest.fixture
def sparse_matrix() -> torch.Tensor:
    """Of 1 % ones; shape (512, 512)."""
    return (torch.rand(512, 512, generator=torch.Generator().manual_seed(0)) < 0.01).float()


def test_a_product_with_a_matrix_of_zeros(sparse_matrix: torch.Tensor):
    found = of_a_layer(lambda x: (sparse_matrix @ x).square().mean(), rows=512)
    assert found_in(found) == [
        ("found = of_a_layer(lambda x: (sparse_matrix @ x).square().mean(), rows=512)", "zeros", "mm")
    ]
    (one,) = found.account.cheaper
    assert 0.1 < one.needed < 0.14  # 12 times the share
    assert [use.name for use in one.backward if use.unused] == ["aten::mm"]


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_matrices_with_few_zeros_sparse_ones_and_small_ones_are_none(sparse_matrix: torch.Tensor):
    with_few = (torch.rand(512, 512) < 0.2).float()
    sparse = sparse_matrix.to_sparse_csr()

    def loss(x: torch.Tensor) -> torch.Tensor:
        return (with_few @ x + sparse @ x).square().mean() + (sparse_matrix[:100, :100] @ x[:100]).sum()

    assert found_in(of_a_layer(loss, rows=512)) == []


def test_activations_that_happen_to_be_zeros_are_none():
    weight = nn.Parameter(torch.randn(256, 8))
    loss = lambda x: (torch.relu(x - 10) @ weight).square().mean()  # noqa: E731
    assert found_in(of_a_layer(loss, rows=512, width=256)) == []


def test_two_products_that_need_less_in_the_other_order():
    found = of_a_layer(lambda x: ((x @ x.mT) @ x).square().mean(), rows=256, width=16)
    (row,) = found_in(found)
    assert row[1:] == ("order", "mm")
    (one,) = found.account.cheaper
    assert one.needed == pytest.approx(16 * 16 * 512 / (256 * 256 * (16 + 16)))
    assert sum(use.unused for use in one.operators) == 2
    assert found_in(of_a_layer(lambda x: (x @ (x.mT @ x)).square().mean(), rows=256, width=8)) == []


def test_an_order_of_batches_with_the_first_product_transposed():
    def loss(x: torch.Tensor) -> torch.Tensor:
        heads = x.view(4, 128, 8)
        return ((heads @ heads.mT).mT @ heads).square().mean()

    found = of_a_layer(loss, rows=512, width=8)
    assert [kind for _, kind, _ in found_in(found)] == ["order"]


def test_products_with_something_in_between_or_another_reader_are_none():
    def loss(x: torch.Tensor) -> torch.Tensor:
        scores = x @ x.mT
        return (torch.softmax(scores, -1) @ x).square().mean()

    def with_another_reader(x: torch.Tensor) -> torch.Tensor:
        scores = x @ x.mT
        return (scores @ x).square().mean() + scores.mean()

    assert found_in(of_a_layer(loss, rows=256, width=8)) == []
    assert found_in(of_a_layer(with_another_reader, rows=256, width=8)) == []


def test_an_order_whose_ends_are_read():
    def loss(x: torch.Tensor) -> torch.Tensor:
        values, _ = x.sort(dim=-1, descending=True)
        return values[:, :2].square().mean()

    found = of_a_layer(loss, width=64)
    assert found_in(found) == [("values, _ = x.sort(dim=-1, descending=True)", "sort", "sort")]
    assert found.account.cheaper[0].needed == pytest.approx(4 / 64)


def test_an_order_that_is_read_is_none():
    def loss(x: torch.Tensor) -> torch.Tensor:
        values, order = x.sort(dim=-1)
        return values[:, :2].square().mean() + x.gather(1, order).mean()

    assert found_in(of_a_layer(loss, width=64)) == []


def test_decompositions_of_which_the_values_are_read():
    def loss(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            norm = torch.linalg.svd(x)[1].max()
        return x.square().mean() / norm

    (row,) = found_in(of_a_layer(loss))
    assert row == ("norm = torch.linalg.svd(x)[1].max()", "values", "_linalg_svd")


def test_decompositions_whose_vectors_are_read_or_whose_gradient_needs_them_are_none():
    def loss(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            first = torch.linalg.svd(x, full_matrices=False)[0][:, 0]
        return first @ x[:, 0] + torch.linalg.svd(x, full_matrices=False)[1].sum()

    assert found_in(of_a_layer(loss)) == []


def test_eigenvectors_of_a_symmetric_matrix():
    def loss(x: torch.Tensor) -> torch.Tensor:
        values, vectors = torch.linalg.eig(x.detach().mT @ x.detach())
        return x.square().mean() * (vectors.real @ values.real).square().sum()

    assert [row[1] for row in found_in(of_a_layer(loss))] == ["symmetric"]


def test_an_inverse_that_is_multiplied_with():
    def loss(x: torch.Tensor) -> torch.Tensor:
        inverse = torch.linalg.inv(x.mT @ x + torch.eye(32))
        return (inverse @ x.mT).square().mean()

    found = of_a_layer(loss)
    assert found_in(found) == [("inverse = torch.linalg.inv(x.mT @ x + torch.eye(32))", "inverse", "linalg_inv_ex")]
    assert sum(use.unused for use in found.account.cheaper[0].operators) == 2


def test_an_inverse_of_which_the_diagonal_is_read_is_none():
    loss = lambda x: torch.linalg.inv(x.mT @ x + torch.eye(32)).diagonal().sum()  # noqa: E731
    assert found_in(of_a_layer(loss)) == []


def test_a_transform_of_real_numbers_to_all_frequencies():
    def loss(x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.fft.fft(x)
        return torch.fft.ifft(spectrum * spectrum.conj()).real.square().mean()

    found = of_a_layer(loss)
    assert found_in(found) == [("spectrum = torch.fft.fft(x)", "real", "_fft_r2c")]
    assert sum(use.unused for use in found.account.cheaper[0].operators) >= 2
    assert found_in(of_a_layer(lambda x: torch.fft.irfft(torch.fft.rfft(x)).square().mean())) == []


def test_a_transform_in_two_dimensions_of_which_few_frequencies_are_weighted():
    weights = nn.Parameter(torch.randn(2, 2, 4, 4, dtype=torch.cfloat))

    def loss(x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.fft.fft2(x.view(4, 2, 16, 16))
        result = torch.zeros_like(spectrum)
        result[..., :4, :4] = torch.einsum("bixy,ioxy->boxy", spectrum[..., :4, :4], weights)
        return torch.fft.ifft2(result).real.square().mean()

    assert [row[1:] for row in found_in(of_a_layer(loss))] == [("real", "_fft_c2c")]


def test_a_transform_all_frequencies_of_which_are_wanted_is_none():
    assert found_in(of_a_layer(lambda x: torch.fft.fft2(x).real.square().mean())) == []


def test_a_convolution_every_second_position_of_which_is_read():
    convolution = nn.Conv1d(1, 4, 3, padding=1)

    def loss(x: torch.Tensor) -> torch.Tensor:
        y = convolution(x[:, None])
        return y[:, :, ::2].square().mean()

    found = of_a_layer(loss)
    assert found_in(found) == [("y = convolution(x[:, None])", "part", "convolution")]
    assert found.account.cheaper[0].needed == 0.5
    assert found_in(of_a_layer(lambda x: convolution(x[:, None])[:, :, :-2].square().mean())) == []


@pytest.mark.parametrize("read", [torch.trace, torch.diagonal, lambda product: torch.einsum("ii->i", product)])
def test_the_diagonal_of_a_product(read: Callable[[torch.Tensor], torch.Tensor]):
    found = of_a_layer(lambda x: read(x @ x.mT).square().mean())
    assert [row[1:] for row in found_in(found)] == [("diagonal", "mm")]
    assert found.account.cheaper[0].needed == pytest.approx(0.05)


def test_what_is_kept_or_given_to_numpy_is_read():
    kept: list[torch.Tensor] = []

    def loss(x: torch.Tensor) -> torch.Tensor:
        kept.append(x.detach().sort(dim=-1)[0])
        order = x.detach().sort(dim=-1)[1]
        order.numpy().sum()
        return x.square().mean() + kept[-1][:, 0].mean() + order[:, 0].sum()

    assert found_in(of_a_layer(loss)) == []
