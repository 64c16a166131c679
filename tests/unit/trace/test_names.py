"""What names mean, on names that recorders have written."""

import pytest

from deepscope.trace.communication import is_collective, library_of
from deepscope.trace.kinds import Kind
from deepscope.trace.names import (
    Frame,
    is_backward_node,
    is_backward_root,
    is_launch,
    is_sync,
    is_sync_operator,
    kind_of,
    parse_call_stack,
    parse_frame,
)

_FRAMES = {
    "train.py(12): main": Frame("train.py", 12, "main"),
    "C:\\me\\a (copy)\\train.py(7): <module>": Frame("C:\\me\\a (copy)\\train.py", 7, "<module>"),
    "/a/b(3).py(40): Net.forward": Frame("/a/b(3).py", 40, "Net.forward"),
    "/a.py(1): f(x): y": Frame("/a.py", 1, "f(x): y"),
    "<ipython-input-3-abc>(2): step": Frame("<ipython-input-3-abc>", 2, "step"),
    "torch/nn/modules/module.py(1501): _call_impl": Frame("torch/nn/modules/module.py", 1501, "_call_impl"),
    "<built-in method linear of type object at 0x7f>": None,
    "nn.Module: Linear_0": None,
    "a.py(x): f": None,
    "a.py(12) f": None,
    "": None,
    "a.py(99999999999999999999): f": None,
}


@pytest.mark.parametrize("name", _FRAMES)
def test_frames_are_taken_apart(name):
    assert parse_frame(name) == _FRAMES[name]


def test_a_call_stack_is_its_frames_innermost_first():
    text = "/a.py(3): Net.forward;/b.py(12): main;<backward>;/c.py(4): loop"
    assert [frame.line for frame in parse_call_stack(text)] == [3, 12, 4]
    assert parse_call_stack("") == []


def test_calls_that_wait_for_the_device():
    for name in (
        "cudaStreamSynchronize",
        "cudaDeviceSynchronize",
        "cudaEventSynchronize",
        "cudaMemcpy",
        "hipMemcpyWithStream",
        "hipDeviceSynchronize",
        "cuCtxSynchronize",
        "cuMemcpyDtoH_v2",
        "zeEventHostSynchronize",
        "urQueueFinish",
        "AscendCL@aclrtSynchronizeStreamWithTimeout",
        "synchronizeStream",
    ):
        assert is_sync(name), name
    for name in (
        "cudaMemcpyAsync",
        "cudaLaunchKernel",
        "cudaStreamWaitEvent",
        "cuMemcpyDtoHAsync_v2",
        "cudaEventQuery",
        "cudaStreamIsCapturing",
        "cudaMemcpy2DAsync",
        "AscendCL@aclrtMemcpyAsync",
    ):
        assert not is_sync(name), name
    assert is_sync_operator("aten::_local_scalar_dense")
    assert not is_sync_operator("aten::item")


def test_calls_that_hand_over_work():
    for name in (
        "cudaLaunchKernel",
        "cuLaunchKernelEx",
        "hipExtModuleLaunchKernel",
        "cudaGraphLaunch",
        "hipMemset",
        "urEnqueueKernelLaunch",
        "Enqueue",
        "enqueueCommand memcpyHtoDAsync",
    ):
        assert is_launch(name), name
    for name in ("cudaStreamSynchronize", "cudaEventRecord", "cudaPointerGetAttributes", "Dequeue@aclnnMm"):
        assert not is_launch(name), name


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", "nccl"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", "nccl"),
        ("hcom_allReduce__123", "hccl"),
        ("oneccl_x", "oneccl"),
        ("gloo:all_reduce", "gloo"),
        ("void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*, int*)", "deep_ep"),
        ("void deep_ep::internode_ll::combine<true, 7168, 9>(void*, int)", "deep_ep"),
        ("void deep_ep::intranode::notify_dispatch<8>(int const*, int*)", "deep_ep"),
        ("void (anonymous namespace)::multimem_one_shot_all_reduce_kernel<c10::BFloat16, 16>(int)", "symmetric_memory"),
        ("void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<float, 16, 8, 4>(float**)", ""),
        ("one_shot_all_reduce_kernel", ""),
        ("void vllm::cross_device_reduce_1stage<2>", "custom_all_reduce"),
        (
            "std::enable_if<((8) > (0)), void>::type aiter::cross_device_reduce_2stage<int, 8>(int*)",
            "custom_all_reduce",
        ),
        ("void quickreduce::allreduce_prototype_twoshot<int, quickreduce::Codec<8>>(int)", "quickreduce"),
        ("void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(A)0, 8>(P)", ""),
        ("void tensorrt_llm::kernels::twoShotAllReduceKernel<half, 8>(tensorrt_llm::kernels::Params)", ""),
        ("void nvshmemi_alltoall_kernel<long>(int)", "nvshmem"),
        ("_c10d_functional::reduce_scatter_tensor", ""),
        ("c10d::allreduce_", "c10d"),
        ("void flashinfer::trtllm_mnnvl_allreduce::oneshotAllreduceFusionKernel<(unsigned char)8, __half>(x)", ""),
        ("_ZN7deep_ep11internode_ll8dispatchILb1ELb0ELi7168EEEvPvS2_", "deep_ep"),
        ("void uccl::internode_ll::combine<true, 7168, 9>(void*)", "deep_ep"),
        ("void mooncake::dispatch<true, 7168>(void*)", "deep_ep"),
        ("barrier_on_stream_kernel_threadgroup(int, int)", "nvshmem"),
        ("void all2all_dispatch<8>(void*)", ""),
        ("a2a_combine_recv_kernel", ""),
    ],
)
def test_what_moves_data_between_ranks_is_known_by_its_library(name, library):
    assert is_collective(name)
    assert library_of(name) == library


@pytest.mark.parametrize(
    "name",
    [
        "void at::native::reduce_kernel<128, 4>",
        "gemm",
        "aten::gather",
        "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<64, 64>, 4, 1>(flash::Flash_fwd_params)",
        "void cutlass::device_kernel<flash::FlashAttnFwdCombine<64, 2> >(flash::Params)",
        "void moe_combine_kernel<float>(float*)",
        "void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*, int*)",
        "void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*, long*>, long*>(long*)",
        "void (anonymous namespace)::groupnorm_kernel_dispatch_down<__hip_bfloat16, 1024u>(unsigned int)",
        "void smallReduceKernel<float>(float*)",
        "block_all_reduce_sum_f32_f32_kernel<256>",
        "void warpAllReduceSum<float>(float*)",
        "_ZN7deep_ep6layout19get_dispatch_layoutILi256EEEvPKl",
        "void rms_norm<flashinfer::trtllm_allreduce_fusion::Pattern>(int)",
        "triton_poi_fused_all_reduce_wait_tensor_0",
        "fsdp::all_gather_copy_in",
        "aten::all",
        "scatter_reduce",
    ],
)
def test_what_sounds_like_it_and_stays_on_its_device_is_computation(name):
    assert not is_collective(name)


def test_autograds_spans_and_nodes():
    assert is_backward_root("autograd::engine::evaluate_function: MmBackward0")
    assert not is_backward_root("MmBackward0")
    for name in (
        "MmBackward0",
        "MmBackward",
        "MyFunctionBackward",
        "torch::autograd::AccumulateGrad",
        "torch::autograd::CopySlices",
        "torch::autograd::CppNode<Mine>",
    ):
        assert is_backward_node(name), name
    for name in (
        "aten::mse_loss_backward",
        "aclnnReluBackward",
        "aten::mm",
        "triton_gelu_backward_0",
        "Backward",
    ):
        assert not is_backward_node(name), name


def test_kinds_of_recorders_to_come():
    assert kind_of("brand_new_runtime", "x") is Kind.RUNTIME
    assert kind_of("Kernel", "x") is Kind.KERNEL
    assert kind_of("unheard_of", "x") is Kind.OTHER
    assert kind_of("", "x", "some process") is Kind.OTHER
