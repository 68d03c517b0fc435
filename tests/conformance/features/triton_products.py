# feature: Triton: tl.dot, autotuning, do_bench, the active driver
import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.autotune([triton.Config({"B": 16}), triton.Config({"B": 32}, num_warps=2)], key=["n"])
@triton.jit
def multiply(a, b, c, n: tl.constexpr, B: tl.constexpr):
    rows, columns = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    total = tl.zeros((B, B), tl.float32)
    for k in range(0, n, B):
        inner = k + tl.arange(0, B)
        x = tl.load(a + rows[:, None] * n + inner[None, :])
        y = tl.load(b + inner[:, None] * n + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


a, b = (torch.randn(64, 64, device=DEVICE, dtype=torch.float16) for _ in range(2))
c = torch.empty(64, 64, device=DEVICE)


def run():
    multiply[lambda m: (64 // m["B"], 64 // m["B"])](a, b, c, 64)


run()
triton.testing.do_bench(run)
torch.testing.assert_close(c, a.float() @ b.float(), atol=1e-2, rtol=1e-2)
