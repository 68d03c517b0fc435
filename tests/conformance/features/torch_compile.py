# feature: PyTorch: torch.compile with kernels of Triton, Inductor's and the program's
import torch
import triton
import triton.language as tl


@triton.jit
def triple(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 3, mask=i < n)


def with_kernel(x):
    out = torch.empty_like(x)
    triple[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return torch.relu(out) + 1


def mixed(x, weight):
    return torch.softmax(torch.nn.functional.gelu(x @ weight), -1).sum(0)


x, weight = torch.randn(40, 32, device="cuda"), torch.randn(32, 200, device="cuda", requires_grad=True)
torch.testing.assert_close(torch.compile(with_kernel, fullgraph=True)(x), torch.relu(3 * x) + 1)
compiled = torch.compile(mixed)
for rows in (40, 39, 38):  # the second shape is compiled for any number of rows
    torch.testing.assert_close(compiled(x[:rows], weight), mixed(x[:rows], weight))
(found,) = torch.autograd.grad(compiled(x, weight).square().sum(), weight)
(expected,) = torch.autograd.grad(mixed(x, weight).square().sum(), weight)
torch.testing.assert_close(found, expected)
quick = torch.compile(lambda x: x.sum(), mode="reduce-overhead")
torch.testing.assert_close(quick(x), x.sum())
