"""Matrices that are known to be diagonal, as the audit of real steps finds what goes through all of their elements."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.distributions import Distribution, Independent, MultivariateNormal, Normal, kl_divergence
from torch.nn import functional as F

from audited_programs import looked_at_all, text_at, training
from deepscope.capture.audit.step_audit import Audited
from deepscope.trace.format.audit import CheaperOperator

pytestmark = pytest.mark.usefixtures("nothing_compiled")

Loss = Callable[[torch.Tensor], torch.Tensor]
SIZE = 12
EYE, FULL = torch.eye(SIZE), torch.rand(SIZE, SIZE)
LEARNT = nn.Parameter(torch.eye(SIZE))
KEPT: list[torch.Tensor] = []


@pytest.fixture(autouse=True)
def arguments_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by default; a program that ran in this process may have switched it off."""
    monkeypatch.setattr(Distribution, "_validate_args", True)


def behind_a_layer(loss: Loss) -> Audited:
    """Steps with this loss of a layer's output, (32, 12), of positive numbers."""
    layer = nn.Linear(16, SIZE)
    return looked_at_all(training(layer, lambda: loss(F.softplus(layer(torch.randn(32, 16))) + 0.1)))


def found_in(loss: Loss) -> list[CheaperOperator]:
    return [one for one in behind_a_layer(loss).account.cheaper if one.kind == "diagonal_matrices"]


def used(one: CheaperOperator) -> set[str]:
    return {use.name.removeprefix("aten::") for use in one.operators if use.unused}


def used_backward(one: CheaperOperator) -> set[str]:
    return {use.name.removeprefix("aten::") for use in one.backward if use.unused}


def posterior_and_prior(x: torch.Tensor) -> torch.Tensor:
    posterior = MultivariateNormal(x, torch.diag_embed(x))
    sample = posterior.rsample()
    prior = MultivariateNormal(torch.zeros(SIZE), EYE)
    return sample.square().mean() + kl_divergence(posterior, prior).mean()


def mended(x: torch.Tensor) -> torch.Tensor:
    posterior = Independent(Normal(x, x.sqrt()), 1)
    sample = posterior.rsample()
    prior = Independent(Normal(torch.zeros(SIZE), torch.ones(SIZE)), 1)
    return sample.square().mean() + kl_divergence(posterior, prior).mean()


def test_distributions_with_diagonal_matrices_are_one_row_at_the_line_of_the_first():
    found = behind_a_layer(posterior_and_prior)
    (one,) = found.account.cheaper
    assert (one.kind, one.shape, one.needed) == ("diagonal_matrices", [32, SIZE, SIZE], 0.1)
    assert text_at(found, one.place) == "posterior = MultivariateNormal(x, torch.diag_embed(x))"
    assert [text_at(found, place) for place in one.others] == ["prior = MultivariateNormal(torch.zeros(SIZE), EYE)"]
    assert used(one) >= {"diag_embed", "linalg_cholesky_ex", "bmm", "linalg_solve_triangular", "pow", "eq"}
    assert used_backward(one) >= {"bmm", "linalg_solve_triangular", "tril"}
    assert behind_a_layer(mended).account.cheaper == []


DIAGONAL: dict[str, tuple[Loss, set[str]]] = {
    "multiplied": (lambda x: torch.diag(x[0]) @ FULL, {"diag_embed", "mm"}),
    "multiplied from the right": (lambda x: x @ torch.diag(x[0]).mT, {"diag_embed", "mm"}),
    "of an identity": (lambda x: (EYE * x[:, None]) @ x[..., None], {"mul", "bmm"}),
    "that is made anew": (lambda x: (x[..., None] * torch.eye(SIZE)) @ FULL.expand(32, -1, -1), {"mul", "bmm"}),
    "from before": (lambda x: x @ EYE, {"mm"}),
    "with a bias": (lambda x: F.linear(x, torch.diag(x[0]), x[1]), {"diag_embed", "addmm"}),
    "inverted": (lambda x: torch.linalg.inv(torch.diag_embed(x)).diagonal(dim1=-2, dim2=-1), {"linalg_inv_ex"}),
    "solved": (lambda x: torch.linalg.solve(torch.diag_embed(x), x[..., None]), {"_linalg_solve_ex"}),
    "with a determinant": (lambda x: torch.logdet(torch.diag_embed(x)), {"_linalg_slogdet"}),
    "with a jitter": (
        lambda x: torch.linalg.cholesky(torch.diag_embed(x) + 1e-3 * EYE).diagonal(dim1=-2, dim2=-1).log(),
        {"diag_embed", "add", "mul", "linalg_cholesky_ex"},
    ),
    "from the factor on": (
        lambda x: torch.linalg.cholesky(torch.diag_embed(x)) @ x[..., None],
        {"diag_embed", "linalg_cholesky_ex", "bmm"},
    ),
    "with scales": (lambda x: MultivariateNormal(x, scale_tril=torch.diag_embed(x)).rsample(), {"diag_embed", "bmm"}),
}


@pytest.mark.parametrize("name", DIAGONAL)
def test_what_is_made_for_full_matrices_is_found(name: str):
    loss_of, operators = DIAGONAL[name]
    (one,) = found_in(lambda x: loss_of(x).square().mean())
    assert used(one) >= operators


def written_to(x: torch.Tensor) -> torch.Tensor:
    matrix = torch.diag_embed(x.detach())
    matrix[:, 0] += 1.0
    return matrix @ x[..., None]


class Changing(nn.Module):
    """A matrix that is diagonal before the first step that is looked at, and changed in it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("moments", torch.eye(SIZE))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + x.detach() @ self.moments
        self.moments += 0 * (x.mT @ x).detach()
        return y


FULL_ONES: dict[str, Loss] = {
    "a sum with a full one": lambda x: torch.linalg.cholesky(x.mT @ x + torch.diag(x[0])),
    "one that a full one is multiplied with after a sum": lambda x: (torch.diag(x[0]) + FULL) @ x.mT,
    "only made": lambda x: torch.diag_embed(x) + FULL,
    "beside the diagonal": lambda x: torch.diag_embed(x, offset=1) @ torch.ones(32, SIZE + 1, 1),
    "along other dimensions": lambda x: torch.diag_embed(x[:SIZE], dim1=0, dim2=1) @ FULL,
    "a softmax of one": lambda x: F.softmax(torch.diag(x[0]), -1) @ FULL,
    "an exponential": lambda x: torch.exp(torch.diag(x[0])) @ FULL,
    "a part": lambda x: torch.diag_embed(x)[:, :, 1:].mT @ x[..., None],
    "the right side": lambda x: torch.linalg.solve(x.mT @ x + FULL, torch.diag(x[0])),
    "the diagonal of a full one": lambda x: torch.diag(x[:SIZE])[:, None] * FULL,
    "nothing but zeros": lambda x: x @ torch.zeros(SIZE, SIZE) + x @ (0 * FULL),
    "a full one from before": lambda x: x @ FULL,
    "a weight that is learnt": lambda x: x @ LEARNT,
    "written to": written_to,
    "changed in the step": Changing(),
}


@pytest.mark.parametrize("name", FULL_ONES)
def test_matrices_that_need_not_be_diagonal_are_none(name: str):
    assert found_in(lambda x: FULL_ONES[name](x).square().mean()) == []


def test_a_matrix_that_is_kept_or_read_otherwise_has_to_be_made_and_its_product_is_found():
    def kept(x: torch.Tensor) -> torch.Tensor:
        matrix = torch.diag(x[0])
        KEPT.append(matrix.detach())
        return matrix @ x.mT

    def read(x: torch.Tensor) -> torch.Tensor:
        matrix = torch.diag(x[0])
        return (matrix + FULL) * (matrix @ FULL)

    for loss_of in (kept, read):
        (one,) = found_in(lambda x, loss_of=loss_of: loss_of(x).square().mean())
        assert used(one) == {"mm"}
