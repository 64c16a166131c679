"""FLOPs from shapes, against multiplications that are counted one by one."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from deepscope.analysis.numbers.flop_formulas import FORMULAS, flops_of_call, lacks_formula, pairs_within
from deepscope.report.operator_columns import flops_missing
from deepscope.trace.names import WITH_NUMBERS
from trace_builder import TraceBuilder

FILE = "/home/me/train.py"


def one_operator(name: str, dims: list[Any], concrete: list[str] | None = None) -> TraceBuilder:
    more = {} if concrete is None else {"Concrete Inputs": concrete}
    return TraceBuilder().line(FILE, 10, "main", 0, 1000).op(name, 100, 500, dims=dims, **more)


QKV = [[2, 4, 16, 8], [2, 4, 32, 8], [2, 4, 32, 10]]
NARROW_KEYS = [[2, 4, 16, 8], [2, 2, 32, 8], [2, 2, 32, 8]]
CONVOLUTION = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2"]


@pytest.mark.parametrize(
    ("name", "dims", "concrete", "flops"),
    [
        ("aten::mm", [[3, 4], [4, 5]], None, 2 * 3 * 4 * 5),
        ("aten::addmm", [[5], [3, 4], [4, 5], [], []], None, 2 * 3 * 4 * 5),
        ("aten::bmm", [[7, 3, 4], [7, 4, 5]], None, 7 * 2 * 3 * 4 * 5),
        ("aten::baddbmm", [[7, 3, 5], [7, 3, 4], [7, 4, 5], [], []], None, 7 * 2 * 3 * 4 * 5),
        ("aten::_scaled_mm", [[3, 4], [4, 5], [], [], [], [], [], []], None, 2 * 3 * 4 * 5),
        ("aten::_grouped_mm", [[30, 4], [6, 4, 5], [6], [], []], None, 2 * 30 * 4 * 5),
        ("aten::_grouped_mm", [[6, 3, 4], [6, 4, 5], [], [], []], None, 6 * 2 * 3 * 4 * 5),
        ("aten::_grouped_mm", [[3, 40], [40, 5], [6], [], []], None, 2 * 3 * 40 * 5),
        ("aten::_grouped_mm", [[6, 3, 4], [4, 50], [6], [], []], None, 2 * 3 * 4 * 50),
        ("aten::convolution", [[2, 4, 9, 9], [8, 2, 3, 3], [8]], CONVOLUTION, 2 * 2 * (5 * 5) * (8 * 2 * 3 * 3)),
        (
            "aten::convolution",
            [[2, 4, 9], [4, 6, 3], [6]],
            ["", "", "", "[1]", "[0]", "[1]", "True", "[0]", "1"],
            2 * 2 * 9 * (4 * 6 * 3),
        ),
        ("aten::_scaled_dot_product_flash_attention", QKV, None, 2 * 2 * 4 * 16 * 32 * (8 + 10)),
        ("aten::_scaled_dot_product_efficient_attention", NARROW_KEYS, None, 2 * 2 * 4 * 16 * 32 * (8 + 8)),
        ("aten::_scaled_dot_product_cudnn_attention_backward", [[2, 4, 16, 10], *QKV], None,
         2 * 2 * 4 * 16 * 32 * (3 * 8 + 2 * 10)),
        ("aten::_flash_attention_forward", [[2, 16, 4, 8], [2, 32, 4, 8], [2, 32, 4, 8], [], []], None,
         2 * 2 * 4 * 16 * 32 * 16),
        ("aten::mv", [[3, 4], [4]], None, 2 * 3 * 4),
        ("aten::addmv_", [[3], [3, 4], [4], [], []], None, 2 * 3 * 4),
        ("aten::dot", [[7], [7]], None, 2 * 7),
        ("aten::addr", [[3, 5], [3], [5], [], []], None, 2 * 3 * 5),
        ("aten::addbmm", [[3, 5], [7, 3, 4], [7, 4, 5], [], []], None, 7 * 2 * 3 * 4 * 5),
        ("aten::_int_mm", [[3, 4], [4, 5]], None, 2 * 3 * 4 * 5),
        ("aten::_euclidean_dist", [[2, 30, 5], [2, 31, 5]], None, 2 * 2 * 30 * 31 * (5 + 2)),
    ],
)  # fmt: skip
def test_flops_of_one_call(profile_of, at, name, dims, concrete, flops):
    profile = profile_of(one_operator(name, dims, concrete))
    assert at(profile, 10).flops == flops
    assert profile.totals.flops == flops
    assert [(one.name, one.flops) for one in profile.operators] == [(name, flops)]


CONVOLUTIONS: list[dict[str, Any]] = [
    {"x": (2, 4, 9, 7), "channels": 6, "kernel": (3, 2), "stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)},
    {"x": (3, 6, 11), "channels": 9, "kernel": (4,), "stride": (3,), "groups": 3},
    {"x": (2, 8, 5, 7), "channels": 8, "kernel": (3, 3), "padding": (1, 1), "groups": 8},
    {"x": (1, 3, 4, 5, 6), "channels": 12, "kernel": (2, 1, 3), "groups": 3},
    {"x": (2, 4, 5, 3), "channels": 6, "kernel": (3, 2), "stride": (2, 3), "transposed": True},
    {"x": (2, 6, 7), "channels": 9, "kernel": (4,), "stride": (2,), "groups": 3, "transposed": True},
]


class Convolved:
    """A convolution by loops: each multiplication of an element of the input with one of the weights."""

    def __init__(self, *, x, channels, kernel, stride=(), padding=(), dilation=(), groups=1, transposed=False):
        rank = len(kernel)
        self.stride, self.padding, self.dilation = (
            stride or (1,) * rank,
            padding or (0,) * rank,
            dilation or (1,) * rank,
        )
        self.x, self.groups, self.transposed = x, groups, transposed
        self.weight = (x[1], channels // groups, *kernel) if transposed else (channels, x[1] // groups, *kernel)
        taps = [self._taps(*one) for one in zip(x[2:], kernel, self.stride, self.padding, self.dilation, strict=True)]
        self.result = (x[0], channels, *(len({place for place, _ in one}) for one in taps))
        self.multiplications = 0
        for _sample, a, b in product(range(x[0]), range(x[1]), range(channels)):
            if a // (x[1] // groups) == b // (channels // groups):
                self.multiplications += sum(1 for _ in product(*taps))

    def _taps(self, size, width, step, pad, gap):
        """Pairs of a place and a tap of the filter: of the result, or of a transposed one's input; zeros around the
        input are multiplied, too."""
        if self.transposed:
            return [(place, tap) for place in range(size) for tap in range(width)]
        places = [at for at in range(0, size + 2 * pad, step) if at + gap * (width - 1) < size + 2 * pad]
        return [(place, tap) for place in places for tap in range(width)]

    def words(self, more=()):
        numbers = [str(list(one)) for one in (self.stride, self.padding, self.dilation)]
        zeros = str([0] * len(self.stride))
        return ["", "", "", *more, *numbers, str(self.transposed), zeros, str(self.groups)]


@pytest.mark.parametrize("given", CONVOLUTIONS)
def test_a_convolution_takes_its_multiplications_and_each_gradient_as_many(given):
    one = Convolved(**given)
    forward = flops_of_call("aten::convolution", [one.x, one.weight, []], one.words())
    assert forward == 2 * one.multiplications
    result = [one.x[0], given["channels"], *one.result[2:]]
    if one.transposed:
        edges = zip(one.x[2:], one.stride, one.weight[2:], strict=True)
        result[2:] = [(size - 1) * step + width for size, step, width in edges]
    for mask, gradients in (("[True, True, True]", 2), ("[False, True, True]", 1), ("[True, False, False]", 1),
                            ("[False, False, True]", 0)):  # fmt: skip
        words = [*one.words(more=("[8]",)), mask]
        backward = flops_of_call("aten::convolution_backward", [result, one.x, one.weight], words)
        assert backward == 2 * one.multiplications * gradients, mask


@pytest.mark.parametrize("shift", [0, -3, 2])
@pytest.mark.parametrize("left", [-1, 0, 3])
@pytest.mark.parametrize("right", [-1, 0, 2])
def test_pairs_within_a_mask_are_those_that_loops_count(shift, left, right):
    for rows, columns in ((7, 7), (5, 9), (9, 5), (1, 4), (4, 1)):
        counted = sum(
            (left < 0 or j >= i + shift - left) and (right < 0 or j <= i + shift + right)
            for i, j in product(range(rows), range(columns))
        )
        assert pairs_within(rows, columns, shift=shift, left=left, right=right) == counted, (rows, columns)


@pytest.mark.parametrize(
    ("name", "place", "products"),
    [
        ("_scaled_dot_product_flash_attention", 4, 2),
        ("_scaled_dot_product_efficient_attention_backward", 11, 5),
        ("_flash_attention_forward", 8, 2),
    ],
)
def test_a_causal_mask_takes_off_what_it_hides(name, place, products):
    sequence_first = name == "_flash_attention_forward"
    one = [2, 9, 3, 8] if sequence_first else [2, 3, 9, 8]
    shapes = [*[one] * (3 if products == 2 else 4), *[[]] * 12]
    visible = sum(j <= i for i, j in product(range(9), repeat=2))
    for words, pairs in ((["False"] * 16, 81), ([], 81), ([""] * place + ["True"], visible)):
        assert flops_of_call(f"aten::{name}", shapes, words) == products * 2 * 2 * 3 * pairs * 8, words


def test_a_causal_call_of_flash_attention_ends_at_the_last_key_and_keeps_to_its_window():
    query, key = [1, 4, 2, 8], [1, 10, 2, 8]
    words = ["", "", "", "0.0", "0.35", "True", "-1", "-1"]
    whole = sum(j <= i + 6 for i, j in product(range(4), range(10)))
    assert flops_of_call("flash_attn::_flash_attn_forward", [query, key, key], words) == 2 * 2 * 2 * whole * 8
    narrow = sum(i + 6 - 2 <= j <= i + 6 for i, j in product(range(4), range(10)))
    words[6] = "2"
    assert flops_of_call("flash_attn::_flash_attn_forward", [query, key, key], words) == 2 * 2 * 2 * narrow * 8


def test_recurrent_layers_multiply_every_matrix_at_every_step_of_every_sequence():
    steps, batch, width, hidden = 5, 3, 7, 11
    gates, layers, directions = 4, 2, 2
    weights: list[list[int]] = []
    multiplications = 0
    for layer, _direction in product(range(layers), range(directions)):
        inner = width if layer == 0 else directions * hidden
        weights += [[gates * hidden, inner], [gates * hidden, hidden], [gates * hidden], [gates * hidden]]
        multiplications += steps * batch * gates * hidden * (inner + hidden)
    state = [layers * directions, batch, hidden]
    forward = [[steps, batch, width], weights, [], [], state, state]
    assert flops_of_call("aten::_cudnn_rnn", forward, []) == 2 * multiplications
    assert flops_of_call("aten::miopen_rnn", [[batch, steps, width], *forward[1:]], []) == 2 * multiplications
    for mask, gradients in (("[True, False, False, True]", 2), ("[True, False, False, False]", 1)):
        words = [""] * 21 + [mask]
        assert flops_of_call("aten::_cudnn_rnn_backward", forward, words) == 2 * multiplications * gradients
    one_layer = [[steps, batch, width], [44, width], [44, hidden], [44], [44]]
    of_one = 2 * steps * batch * 44 * (width + hidden)
    assert flops_of_call("aten::mkldnn_rnn_layer", one_layer, []) == of_one
    assert flops_of_call("aten::mkldnn_rnn_layer_backward", one_layer, []) == 2 * of_one
    assert flops_of_call("aten::_cudnn_rnn", [[5, 3, 7], [], []], []) is None


def test_a_bilinear_layer_multiplies_with_its_first_input_then_with_its_second():
    rows, first, second, results = 3, 5, 6, 4
    shapes = [[rows, first], [results, first, second], [rows, second]]
    words = ["", "", "", "[1, 3]", "[0]", "[1, 2]", "[2, 3]", "1"]
    multiplications = sum(first * second + second for _ in product(range(rows), range(results)))
    assert flops_of_call("aten::_trilinear", shapes, words) == 2 * multiplications
    of_weight = [[rows, first], [rows, results], [rows, second]]
    words = ["", "", "", "[1, 3]", "[2, 3]", "[1, 2]", "[0]", "1"]  # x times the gradient is no sum
    assert flops_of_call("aten::_trilinear", of_weight, words) == 2 * rows * first * second * results


@pytest.mark.parametrize(
    ("name", "dims", "strides", "shown"),
    [
        ("aten::_cdist_forward", [[4, 7, 5], [4, 9, 5]], None, "no formula"),
        ("aten::_sparse_addmm", [[6, 5], [6, 8], [8, 5]], [[5, 1], [], [5, 1]], "no formula"),
        ("aten::_linalg_svd", [[6, 8]], None, "no formula"),
        ("aten::_linalg_solve_ex", [[6, 6], [6, 2]], None, "no formula"),
        ("aten::linalg_cholesky_ex", [[6, 6]], None, "no formula"),
        ("aten::linalg_vector_norm", [[6, 8]], None, ""),
        ("aten::mm", [[6, 8], [8, 5]], [[], [5, 1]], "unknown"),
        ("aten::mm", [[0, 8], [8, 5]], [[8, 1], [5, 1]], ""),
        ("vllm::unified_attention_with_output", [[6, 8]], None, "no formula"),
        ("aten::add", [[6, 8], [6, 8]], None, ""),
    ],
)
def test_an_operator_that_multiplies_and_has_no_flops_says_so(profile_of, name, dims, strides, shown):
    more = {} if strides is None else {"Input Strides": strides}
    profile = profile_of(TraceBuilder().line(FILE, 10, "main", 0, 1000).op(name, 100, 500, dims=dims, **more))
    (row,) = profile.operators
    assert row.flops == 0
    assert flops_missing(row) == shown


_DECOMPOSITIONS = {
    "1.8": "_symeig_helper _solve_helper _svd_helper _inverse_helper _linalg_inv_out_helper_ _linalg_solve_out_helper_ "
    "_linalg_qr_helper _lu_with_info _lu_solve_helper _cholesky_helper _cholesky_solve_helper _triangular_solve_helper "
    "_syevd_helper _det_lu_based_helper symeig eig solve lstsq",
    "1.9": "linalg_eig linalg_eigvals linalg_cholesky_ex linalg_inv_ex linalg_lstsq linalg_householder_product",
    "1.11": "linalg_lu_factor_ex linalg_solve_triangular cholesky cholesky_inverse geqrf orgqr ormqr triangular_solve",
    "2.2": "_linalg_det _linalg_eigh _linalg_slogdet _linalg_solve_ex _linalg_svd linalg_ldl_factor_ex "
    "linalg_ldl_solve linalg_lu linalg_lu_solve linalg_qr",
    "2.7": "_linalg_eigvals _spsolve svd qr inverse det slogdet logdet lu_solve linalg_inv linalg_eigvalsh "
    "linalg_svdvals",
}


@pytest.mark.parametrize("name", [name for names in _DECOMPOSITIONS.values() for name in names.split()])
def test_decompositions_and_solvers_of_each_torch_are_named_as_without_a_formula(name):
    assert lacks_formula(f"aten::{name}")


@pytest.mark.parametrize(
    "name",
    ["linalg_vector_norm", "linalg_cross", "linalg_diagonal", "linalg_vander", "lu_unpack", "_linalg_check_errors"],
)
def test_what_only_sounds_like_them_is_not(name):
    assert not lacks_formula(f"aten::{name}")


def test_an_operator_without_a_formula_that_calls_one_with_a_formula_is_known(profile_of):
    builder = one_operator("my::linear", [[3, 4], [4, 5]]).op("aten::mm", 120, 100, dims=[[3, 4], [4, 5]])
    assert [flops_missing(row) for row in profile_of(builder).operators] == ["", ""]


@pytest.mark.parametrize(
    ("name", "dims", "concrete"),
    [
        ("aten::mm", [[3, 4]], None),
        ("aten::mm", [[3, 4], [5, 6]], None),
        ("aten::mm", [["3", "4"], ["4", "5"]], None),
        ("aten::mm", {"a": 1}, None),
        ("aten::mm", [[3, -4], [-4, 5]], None),
        ("aten::mm", [[1 << 40, 1 << 40], [1 << 40, 1]], None),
        ("aten::convolution", [[2, 4, 9, 9], [8, 2, 3, 3], [8]], None),
        ("aten::convolution", [[2, 4, 9, 9], [8, 2, 3, 3], [8]], ["", "", "", "[0, 0]", "[1, 1]", "[1, 1]", "False"]),
        ("aten::_flash_attention_forward", [[90, 4, 8], [90, 4, 8], [90, 4, 8], [5], [5]], None),
        ("aten::add", [[3, 4], [3, 4]], None),
    ],
)
def test_a_call_whose_arguments_do_not_tell_has_no_flops(profile_of, name, dims, concrete):
    assert profile_of(one_operator(name, dims, concrete)).totals.flops == 0


class Asked(Exception):
    """A formula looked at a number among the arguments."""


class NoWords(list):
    def __getitem__(self, _place):
        raise Asked


@pytest.mark.parametrize("name", FORMULAS)
def test_the_reader_keeps_the_numbers_among_the_arguments_where_a_formula_asks_for_them(name):
    asked = False
    layers = [[2, 4, 9], [[9, 9]] * 4]
    for shapes in (
        [[2, 4, 9, 9]] * 12,
        [[2, 4, 9, 9]] * 3 + [[]] * 12,
        [[2, 4, 9, 9]] * 4 + [[]] * 12,
        [[9, 9]] * 12,
        layers,
    ):
        try:
            FORMULAS[name](shapes, NoWords([""] * 24))
        except Asked:
            asked = True
        except (LookupError, TypeError, ValueError):
            continue
    assert not asked or name in WITH_NUMBERS


def test_an_operator_below_one_that_is_counted_counts_nothing(profile_of):
    dims = [[2, 4, 9, 9], [8, 2, 3, 3], [8]]
    builder = one_operator("aten::convolution", dims, CONVOLUTION)
    builder.op("aten::_convolution", 110, 400, dims=dims, **{"Concrete Inputs": CONVOLUTION})
    builder.op("aten::mm", 120, 100, dims=[[3, 4], [4, 5]])
    profile = profile_of(builder)
    assert {one.name: one.flops for one in profile.operators} == {
        "aten::convolution": 2 * 2 * 25 * 144,
        "aten::_convolution": 0,
        "aten::mm": 0,
    }


def test_an_operator_below_one_that_does_not_tell_is_counted(profile_of):
    builder = one_operator("aten::convolution", [[2, 4, 9, 9], [8, 2, 3, 3], [8]])
    assert profile_of(builder.op("aten::mm", 120, 100, dims=[[3, 4], [4, 5]])).totals.flops == 120


def test_backward_flops_stand_at_the_forward_line(profile_of, at):
    builder = TraceBuilder().line(FILE, 10, "main", 0, 500).line(FILE, 11, "main", 600, 2000)
    builder.op("aten::mm", 100, 100, sequence=2, dims=[[3, 4], [4, 5]]).flow(100, 1000)
    builder.backward("MmBackward0", 1000, 800, 2)
    builder.op("aten::mm", 1100, 100, tid=102, dims=[[4, 3], [3, 5]])
    profile = profile_of(builder)
    assert at(profile, 10).flops == 2 * 120
    assert profile.totals.flops == 2 * 120


def test_a_step_has_its_own_flops_alone(profile_of):
    builder = TraceBuilder().line(FILE, 10, "main", 0, 2000).step(1, 0, 1000).step(2, 1000, 1000)
    builder.op("aten::mm", 100, 10, dims=[[3, 4], [4, 5]]).op("aten::mm", 1100, 10, dims=[[3, 4], [4, 50]])
    assert [profile_of(builder, step=number).totals.flops for number in (1, 2)] == [120, 1200]
