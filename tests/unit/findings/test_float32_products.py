"""DS006, float32 products without tensor cores."""

from __future__ import annotations

from typing import Any

import pytest

from deepscope.analysis.peaks import peak_of
from trace_builder import TraceBuilder

FILE = "/home/me/model.py"
A100 = {"name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8}
US = 1_000


def products(kernel: str, **device: Any) -> TraceBuilder:
    builder = TraceBuilder(deviceProperties=[device]) if device else TraceBuilder()
    for number in range(2):
        at = number * 1000 * US
        builder.step(number, at, 1000 * US).line(FILE, 7, "forward", at, 1000 * US)
        builder.kernel(kernel, at + 1 * US, at + 5 * US, 800 * US)
    return builder


@pytest.mark.parametrize(
    "kernel",
    [
        "ampere_sgemm_128x64_tn",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_nn_align1>(cutlass_80_simt_sgemm_128x128::Params)",
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_kernel",
        "cudnn_ampere_scudnn_128x64_relu_xregs_large_nn_v1",
        "void implicit_convolve_sgemm<float, float, 128, 6, 7, 3, 3, 5, 1, false, true, true>(int, int, int)",
    ],
)
def test_products_on_ordinary_units_are_found(findings_of, kernel):
    (found,) = findings_of(products(kernel, **A100), "DS006")
    assert (found.file, found.line) == (FILE, 7)
    # 312 / 19.5 = 16 times as fast in bfloat16.
    assert found.evidence == {"float32_products_ns": 1600 * US, "kernels": 2, "faster_by": 16.0}
    assert found.saving_ns == 1500 * US


@pytest.mark.parametrize(
    ("waits_us", "saving_us"),
    [
        (700, 2 * 700 + 5),  # the device is idle for 5 µs until the line launches, and then for the sake of the wait
        (0, 5 + 20),
    ],
)
def test_a_step_is_shorter_by_no_more_than_the_cpu_waits_for_the_device(findings_of, waits_us, saving_us):
    built = products("ampere_sgemm_128x64_tn", **A100)
    times = {"mean_ns": 1000 * US, "quartiles_ns": [1000 * US] * 3}
    built.metadata["deepscope"] = {"plain_steps": {"steps": 9, "wall": times, "cpu": times}}
    for number in range(2):
        built.kernel("tail", number * 1000 * US + 2 * US, number * 1000 * US + 825 * US, 160 * US)
        if waits_us:
            built.runtime("cudaStreamSynchronize", (number * 1000 + 990 - waits_us) * US, waits_us * US)
    (found,) = findings_of(built, "DS006")
    assert found.saving_ns == saving_us * US
    assert ("the CPU hardly waits for the device" in found.message) == (waits_us == 0)


@pytest.mark.parametrize(
    ("settings", "advised", "not_advised"),
    [
        ({}, "set_float32_matmul_precision", "Autocast is on"),
        ({"matmul_precision": "highest"}, "set_float32_matmul_precision", "Autocast is on"),
        ({"matmul_precision": "high"}, "torch.autocast", "set_float32_matmul_precision"),
        ({"autocast": "bfloat16"}, "Autocast is on elsewhere (`bfloat16`)", "set_float32_matmul_precision"),
    ],
)
def test_what_is_set_is_not_recommended(findings_of, settings, advised, not_advised):
    built = products("ampere_sgemm_128x64_tn", **A100)
    built.metadata["deepscope"] = {"format": 2, "settings": settings}
    (found,) = findings_of(built, "DS006")
    assert advised in found.remedy.text
    assert not_advised not in found.remedy.text


@pytest.mark.parametrize(
    "kernel",
    [
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>(Params)",
        "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16",
        "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16",
        "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
        "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn",
        "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float> >(int)",
    ],
)
def test_products_on_tensor_cores_and_other_kernels_are_not(findings_of, kernel):
    assert findings_of(products(kernel, **A100), "DS006") == []


@pytest.mark.parametrize(
    "device",
    [
        {"name": "Tesla V100-SXM2-32GB", "computeMajor": 7},
        {"name": "AMD Instinct MI300X", "computeMajor": 9},
        {"name": "Tesla V100-SXM2-32GB"},
        {"name": "Unheard-of 1"},
        {},
    ],
)
def test_only_devices_that_have_the_faster_units_count(findings_of, device):
    assert findings_of(products("ampere_sgemm_128x64_tn", **device), "DS006") == []


def test_a_device_whose_peak_is_not_known_counts_with_a_half(findings_of):
    (found,) = findings_of(products("ampere_sgemm_64x64_nt", name="NVIDIA GeForce RTX 3060", computeMajor=8), "DS006")
    assert (found.evidence["faster_by"], found.saving_ns) == (2.0, 800 * US)


def test_work_that_outlasts_the_window_saves_no_more_than_its_share(findings_of):
    builder = products("ampere_sgemm_128x64_tn", **A100)
    builder.kernel("elementwise", 2 * US, 3000 * US, 1600 * US).kernel("later", 3 * US, 5000 * US, 800 * US)
    (found,) = findings_of(builder, "DS006")
    assert found.saving_ns == 1600 * US * 15 // 16 * 2000 // 4000


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100 80GB SXM"),
        ("NVIDIA A100 80GB PCIe", "A100 80GB PCIe"),
        ("NVIDIA A100-PCIE-40GB", "A100 40GB"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA B200", "B200"),
        ("Tesla V100-SXM2-32GB", "V100 SXM2"),
        ("Tesla V100-PCIE-16GB", "V100 PCIe"),
        ("NVIDIA L4", "L4"),
        ("Tesla T4", "T4"),
        ("NVIDIA GeForce RTX 3090", "GeForce RTX 3090"),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090"),
        ("AMD Instinct MI250X/MI250", "MI250X, one die"),
        ("AMD Instinct MI300X", "MI300X"),
        ("NVIDIA L40S", None),
        ("NVIDIA GeForce RTX 3090 Ti", None),
        ("NVIDIA A10G", None),
        ("", None),
    ],
)
def test_the_peak_of_a_device_is_found_by_its_name(name, model):
    peak = peak_of(name)
    assert (peak.name if peak else None) == model
    if peak is not None:
        rates = [rate for rate in (peak.float32, peak.tf32, peak.bfloat16, peak.float8) if rate]
        assert rates == sorted(rates)
        assert 10**12 < peak.float32 < 10**15
        assert 10**11 < peak.memory_bytes_per_s < 10**13
        assert peak.source.startswith("https://")
