"""Names as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepscope.report.event_names import readable

ENGINE = "autograd::engine::evaluate_function: "
NATIVE = "at::native::"
ADD = f"{NATIVE}CUDAFunctor_add<c10::BFloat16>"
ARRAY = "at::detail::Array<char*, 3>"
IN_LAMBDAS = "log_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda(float)#1}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("aten::mm", "aten::mm"),
        ("MmBackward0", "MmBackward0"),
        (f"{ENGINE}MmBackward0", "autograd: MmBackward0"),
        (f"{ENGINE}torch::autograd::AccumulateGrad", "autograd: AccumulateGrad"),
        ("torch::autograd::CppNode<lab::Scan>", "Scan, backward"),
        ("torch::jit::(anonymous namespace)::DifferentiableGraphBackward", "TorchScript graph, backward"),
        ("<forked function>", "TorchScript fork"),
        ("## Call CompiledFxGraph fsdzu5o72ntt4a ##", "compiled graph fsdzu5o7"),
        ("## Call CompiledFxGraph None ##", "compiled graph"),
        ("Torch-Compiled Region: 3/0", "compiled region 3/0"),
        ("Torch-Compiled Region", "compiled region"),
        ("volta_sgemm_128x64_nn", "volta_sgemm_128x64_nn"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevComm*, unsigned long, ncclWork*)", "ncclDevKernel_AllGather_RING_LL"),
        (
            f"void {NATIVE}(anonymous namespace)::max_pool_forward_nchw<float, float>(int, float const*, long)",
            "max_pool_forward_nchw<float, float>",
        ),
        (
            f"void {NATIVE}vectorized_elementwise_kernel<4, {ADD}, {ARRAY} >(int, {ADD}, {ARRAY})",
            "vectorized_elementwise_kernel<4, CUDAFunctor_add<BFloat16>, Array<char*, 3>>",
        ),
        (f"void {NATIVE}unrolled<128, {NATIVE}{IN_LAMBDAS}>(int)", "unrolled<128, log_kernel_cuda(float)>"),
        (
            (
                "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
                "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long, float)"
            ),
            "fused_add_rms_norm_kernel<BFloat16, 8>",
        ),
        (
            "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float, 7>(internal::Params<int>)",
            "kernel<int, float, 7>",
        ),
        ("void lab::(anonymous namespace)::Sum<int>::operator()<float>(float*) const", "Sum<int>::operator()<float>"),
        ("lab::each(void (*)(int), std::vector<int>)::{lambda(int)#1}::operator()(int) const", "each"),
        ("unsigned long lab::pick<((4) < (8)), int>(int*)", "pick<((4) < (8)), int>"),
        ("void lab::scan<(lab::Kind)1, lab::to<int (lab::Box<int>)> >(int)", "scan<(Kind)1, to<int (Box<int>)>>"),
        ("{anonymous}::twice<float>(float*) [clone .kd]", "twice<float>"),
        ("Memcpy DtoH (Device -> Pageable)", "Memcpy DtoH (Device -> Pageable)"),
        ("[x](command:y) <img src=x>", "[x](command:y) <img src=x>"),
        ("(a name)", "(a name)"),
    ],
)
def test_a_name_keeps_what_a_reader_needs(name: str, text: str) -> None:
    assert readable(name) == text


@given(st.text(alphabet="ab:<>(){}# ,voidlambda#1", min_size=1, max_size=200))
def test_no_name_becomes_empty_or_longer_than_it_was(name: str) -> None:
    assert not name.strip() or 0 < len(readable(name)) <= len(name) + len("autograd: ")


def test_a_name_that_repeats_the_engine_is_no_endless_recursion() -> None:
    assert readable(ENGINE * 3000 + "x") == "autograd: " + ENGINE * 2999 + "x"
