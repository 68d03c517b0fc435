"""A kernel for one GPU on another one: the message names the instruction and what takes its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulab import cupy as cp
from gpulab import device
from gpulab.simulator.device.instructions import NEEDS
from gpulab.simulator.hardware import find

HEADER = ".version 8.7\n.target {target}\n.address_size 64\n.visible .entry kernel() {{ {body} ret; }}"
SYNC = ".sync.aligned"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = device.current().gpu
    yield
    device.current().gpu = before


def launch(tmp_path: Path, target: str, body: str, gpu: str) -> None:
    file = tmp_path / "kernel.ptx"
    file.write_text(HEADER.format(target=target, body=body), encoding="utf-8")
    device.simulate(gpu)
    cp.RawModule(path=str(file)).get_function("kernel")((1,), (128,), ())


@pytest.mark.parametrize(
    ("target", "body", "gpu", "said"),
    [
        ("sm_100a", f"tcgen05.relinquish_alloc_permit.cta_group::1{SYNC};", "H100",
         "tcgen05.relinquish_alloc_permit is an instruction of GPUs of compute capability 10.0 to 10.3; the H100 "
         r"has 9.0. Hopper \(9.0\) has wgmma in its place"),
        ("sm_90a", f"wgmma.commit_group{SYNC};", "B200", r"capability 9.0; the B200 has 10.0. Blackwell \(10.0\) has tcgen05"),
        ("sm_90a", f"wgmma.fence{SYNC};", "A100", "wgmma.fence is .* 9.0; the A100 has 8.0.*mma.sync"),
        ("sm_90", "barrier.cluster.arrive; barrier.cluster.wait;", "A100", "9.0 or later; the A100 has 8.0"),
        ("sm_90", "cp.async.bulk.commit_group;", "A100",
         "cp.async.bulk is an instruction .* 9.0 or later; the A100 has 8.0. cp.async copies"),
        ("sm_100a", ".reg .b16 %h; .reg .f32 %f; cvt.rp.satfinite.ue8m0x2.f32 %h, %f, %f;", "H100",
         "cvt of ue8m0x2 is an instruction .* 10.0 or later; the H100 has 9.0. The functions of cuda_fp8.h"),
        ("sm_89", ".reg .b16 %h; .reg .f32 %f; cvt.rn.satfinite.e4m3x2.f32 %h, %f, %f;", "A100",
         "cvt of e4m3x2 is an instruction .* 8.9 or later; the A100 has 8.0"),
        ("sm_80", "cp.async.wait_all;", "T4", "8.0 or later; the T4 has 7.5. Load to registers"),
    ],
)  # fmt: skip
def test_an_instruction_that_a_gpu_does_not_have_is_named_with_what_takes_its_place(
    target, body, gpu, said, tmp_path
):
    with pytest.raises(device.LaunchError, match=f"kernel: {said}" if said.startswith("tcgen05") else said):
        launch(tmp_path, target, body, gpu)


@pytest.mark.parametrize(
    ("target", "body", "gpu"),
    [
        ("sm_100a", f"tcgen05.relinquish_alloc_permit.cta_group::1{SYNC};", "B200"),
        ("sm_90a", f"wgmma.commit_group{SYNC};", "H100"),
        ("sm_80", "cp.async.wait_all;", "B200"),
    ],
)
def test_a_gpu_that_has_it_runs_it(target, body, gpu, tmp_path):
    launch(tmp_path, target, body, gpu)


def test_the_same_kernel_is_checked_again_on_another_gpu(tmp_path):
    launch(tmp_path, "sm_90a", f"wgmma.fence{SYNC};", "H100")
    with pytest.raises(device.LaunchError, match=r"the A100 has 8\.0"):
        launch(tmp_path, "sm_90a", f"wgmma.fence{SYNC};", "A100")


def test_every_need_is_met_by_some_gpu_of_the_catalogue():
    for need in NEEDS.values():
        assert any(need.met_by(find(name).cc) for name in ("A100", "H100", "B200"))
