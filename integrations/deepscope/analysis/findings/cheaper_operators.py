"""Operators in place of which a cheaper one would do, as an audit sees them (DS047)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from math import prod
from typing import NamedTuple

from deepscope.analysis.findings.audited_work import both_passes_ns
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.quantities import count_text
from deepscope.records import Finding
from deepscope.trace.format.audit import CheaperOperator, OperatorChoice


class _Advice(NamedTuple):
    message: str
    """With the places `operator`, `shape`, `needed`, `rows` and `different`."""
    remedy: str


_DECOMPOSITIONS = {
    "aten::_linalg_svd": ("svd", "torch.linalg.svdvals(a)"),
    "aten::_linalg_eigh": ("eigh", "torch.linalg.eigvalsh(a)"),
    "aten::linalg_eig": ("eig", "torch.linalg.eigvals(a)"),
}
_ADVICE: dict[OperatorChoice, _Advice] = {
    "zeros": _Advice(
        "most elements of a matrix that {operator} multiplies here (result {shape}) are zeros",
        "Make it sparse once, before the loop: `a = a.to_sparse_csr()`, then `a @ x`; the graphs of a batch are blocks "
        "of one such matrix. With a list of edges: `index_add_` of the rows that they lead from.",
    ),
    "order": _Advice(
        "a product ({shape}) is only multiplied with a third matrix: in the other order the two products need "
        "{needed:.0%} of the operations",
        "Multiply the other two first: `a @ (b @ c)` in place of `(a @ b) @ c`. Results differ by rounding.",
    ),
    "sort": _Advice(
        "all of {shape} is sorted, and a small part of the order is read",
        "The largest or smallest few: `torch.topk(x, k)`; one place in the order: `torch.kthvalue`, `torch.median`.",
    ),
    "values": _Advice(
        "{operator} computes vectors that nobody reads, beside the values",
        "Ask for the values alone: `{values}`.",
    ),
    "symmetric": _Advice(
        "eig decomposes symmetric matrices",
        "`torch.linalg.eigh(a)` does so faster, and its results are real.",
    ),
    "inverse": _Advice(
        "a matrix ({shape}) is inverted, and the inverse only multiplied with",
        "Solve in place of it: `torch.linalg.solve(a, b)` is `inv(a) @ b`, and more exact; for a positive definite "
        "matrix `torch.cholesky_solve(b, torch.linalg.cholesky(a))`.",
    ),
    "real": _Advice(
        "a Fourier transform of real numbers ({shape}) makes both halves of the frequencies, one of which mirrors the "
        "other",
        "`torch.fft.rfft` and `torch.fft.irfft(…, n=length)` compute one half, and all between them goes through half "
        "as much.",
    ),
    "part": _Advice(
        "{needed:.0%} of what this convolution computes ({shape}) are read",
        "Compute what is read: `stride=2` in place of every second position afterwards; for a part, cut the input "
        "first.",
    ),
    "diagonal": _Advice(
        "of a product ({shape}) the diagonal alone is read",
        "`(a * b.mT).sum(-1)` is the diagonal of `a @ b`, `(a * b.mT).sum()` its trace.",
    ),
    "diagonal_matrices": _Advice(
        "operators for full matrices go through diagonal ones ({shape}){others}",
        "Work with the vector of what is on the diagonal: `Independent(Normal(mean, std), 1)` in place of "
        "`MultivariateNormal(mean, torch.diag_embed(std**2))`; `d[:, None] * x` is `torch.diag(d) @ x`, `1 / d` the "
        "inverse, `d.sqrt()` the Cholesky factor, `d.log().sum(-1)` the logarithm of the determinant.",
    ),
    "softmax_before": _Advice(
        "a softmax normalises once more what is normalised here ({shape})",
        "Give it the numbers from before: `log_softmax(log_softmax(x) / t)` is `log_softmax(x / t)`.",
    ),
    "softmax_again": _Advice(
        "log_softmax of what are logarithms of probabilities already ({shape}) changes nothing",
        "Leave it out. `F.cross_entropy` begins with it; `F.nll_loss(x, labels)` is the rest of it.",
    ),
    "classes": _Advice(
        "a tensor ({shape}) is compared with one number after the other, and the matches are counted",
        "Count all in one pass: `torch.bincount(target * C + prediction, minlength=C * C).view(C, C)` has each pair of "
        "C classes; its diagonal are the hits, the sums of its rows and columns how often each class occurs. What is "
        "left out (`target != 255`) is cut from both before.",
    ),
    "repeated_rows": _Advice(
        "a linear layer is applied to {rows} rows that were gathered or expanded from {different}",
        "Apply it before they are, a part of its weight to each source, and add the results: `w1, w2 = "
        "layer.weight.chunk(2, dim=1)`, then `F.linear(h, w1, layer.bias)[i] + F.linear(h, w2)[j]` in place of "
        "`layer(torch.cat([h[i], h[j]], -1))`; of all pairs `F.linear(x, w1, layer.bias)[:, :, None] + "
        "F.linear(y, w2)[:, None]`. Results differ by rounding.",
    ),
}
_FUNCTIONS: dict[OperatorChoice, str] = {
    "gelu": "`F.gelu(x)`, and where it is written with `tanh` `F.gelu(x, approximate='tanh')`.",
    "silu": "`F.silu(x)`.",
    "relu": "`F.relu(x)`.",
    "leaky_relu": "`F.leaky_relu(x, slope)`.",
    "layer_norm": "`F.layer_norm(x, x.shape[-1:], weight, bias, eps)`, or `nn.LayerNorm`; it adds `eps` to the "
    "variance, which it takes without the correction of `std()` and `var()`.",
    "softmax": "`torch.softmax(x, -1)`; of its logarithm `torch.log_softmax(x, -1)`.",
    "log_softmax": "`torch.log_softmax(x, -1)`, which is more exact, too.",
    "cross_entropy": "`F.cross_entropy(x, labels)` takes the numbers of the classes, without one-hot vectors.",
}
"""Of torch's operators for what is written out."""


_OF_LIBRARY = (
    "`{module}` of a library does so. Choose another form of the activation in its configuration: "
    '`activation_function="gelu_pytorch_tanh"` (or `hidden_act`) in transformers, which computes the same.'
)


def _advice(kind: OperatorChoice) -> _Advice:
    if (function := _FUNCTIONS.get(kind)) is None:
        return _ADVICE[kind]
    return _Advice(f"{kind} is written out: {{operators}} operators go through {{shape}} one after the other", function)


def _find(facts: Facts) -> Iterator[Finding]:
    for one in facts.audit.cheaper:
        work_ns = both_passes_ns(facts, one)
        message, remedy = _advice(one.kind)
        if one.module:
            remedy = _OF_LIBRARY.format(module=one.module)
        operator, values = _DECOMPOSITIONS.get(one.name, (one.name.removeprefix("aten::"), ""))
        yield from RULE.found_at(
            facts,
            one.place,
            takes_ns=work_ns,
            saving_ns=_saved_ns(one, work_ns),
            message=_calls(one)
            + message.format(
                operator=operator,
                shape=one.shape,
                needed=one.needed,
                rows=f"{prod(one.shape[:-1]):,}",
                different=f"{one.different:,}",
                operators=one.unused_calls // max(one.times, 1),
                others=_as_at(facts, one.others),
            ),
            evidence={"work_ns": work_ns, "needed_ratio": round(one.needed, 3), "calls_per_step": one.times},
            remedy=remedy.format(values=values) if values else remedy,
        )


def counted_classes_ns(facts: Facts) -> Counter[int]:
    """By line: what is saved of comparisons with one number after the other."""
    found: Counter[int] = Counter()
    for one in facts.audit.cheaper:
        if one.kind == "classes":
            found[facts.audited_line(one.place)] += _saved_ns(one, both_passes_ns(facts, one))
    return found


def _saved_ns(one: CheaperOperator, work_ns: int) -> int:
    return int((1 - one.needed) * work_ns)


def _as_at(facts: Facts, places: Iterable[int]) -> str:
    words = [facts.audited_place_text(place) for place in places]
    return f", as at {', '.join(words)}" if words else ""


def _calls(one: CheaperOperator) -> str:
    return f"{count_text(one.times)} times a step " if one.times > 1 else ""


RULE = Rule("DS047", "A cheaper operator would do", _find, shortens_work=True, measured_on=("cpu",))
