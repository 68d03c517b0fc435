# feature: a training script of PyTorch: Triton kernels, torch.compile, autocast, checkpoints
import argparse
import os
import tempfile

import torch
import triton
import triton.language as tl
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@triton.jit
def rms_forward(x, weight, out, scale, n, eps, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * n + i, mask=i < n, other=0.0)
    by = tl.rsqrt(tl.sum(values * values) / n + eps)
    tl.store(scale + row, by)
    tl.store(out + row * n + i, values * by * tl.load(weight + i, mask=i < n), mask=i < n)


@triton.jit
def rms_backward(x, weight, scale, given, dx, dweight, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    by = tl.load(scale + row)
    values = tl.load(x + row * n + i, mask=i < n, other=0.0) * by
    g = tl.load(given + row * n + i, mask=i < n, other=0.0)
    weighted = g * tl.load(weight + i, mask=i < n, other=0.0)
    tl.store(dx + row * n + i, by * (weighted - values * tl.sum(weighted * values) / n), mask=i < n)
    tl.atomic_add(dweight + i, g * values, mask=i < n)


class RMS(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        rows, n = x.numel() // x.shape[-1], x.shape[-1]
        x = x.contiguous()
        out, scale = torch.empty_like(x), torch.empty(rows, device=x.device)
        rms_forward[(rows,)](x, weight, out, scale, n, 1e-6, BLOCK=triton.next_power_of_2(n))
        ctx.save_for_backward(x, weight, scale)
        return out

    @staticmethod
    def backward(ctx, given):
        x, weight, scale = ctx.saved_tensors
        rows, n = x.numel() // x.shape[-1], x.shape[-1]
        dx, dweight = torch.empty_like(x), torch.zeros_like(weight)
        block = triton.next_power_of_2(n)
        rms_backward[(rows,)](x, weight, scale, given.contiguous(), dx, dweight, n, BLOCK=block)
        return dx, dweight


class Norm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return RMS.apply(x.float(), self.weight)


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.first, self.second = Norm(n), Norm(n)
        self.qkv, self.project = nn.Linear(n, 3 * n), nn.Linear(n, n)
        self.mlp = torch.compile(nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(), nn.Linear(2 * n, n)))

    def forward(self, x):
        b, t, n = x.shape
        q, k, v = (
            part.view(b, t, 2, n // 2).transpose(1, 2) for part in self.qkv(self.first(x)).chunk(3, -1)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).reshape(b, t, n))
        return x + self.mlp(self.second(x))


class Model(nn.Module):
    def __init__(self, letters, n):
        super().__init__()
        self.embed, self.block = nn.Embedding(letters, n), Block(n)
        self.head = nn.Linear(n, letters)

    def forward(self, letters):
        return self.head(self.block(self.embed(letters)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert device.type == "cuda", "this script needs a GPU"
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.set_float32_matmul_precision("high")

    text = torch.arange(17).repeat(64, 2)[:, :24] + torch.randint(0, 17, (64, 1))
    text = text % 17
    data = TensorDataset(text[:, :-1], text[:, 1:])
    loader = DataLoader(data, batch_size=16, shuffle=True, pin_memory=True)
    model = Model(17, 32).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs * len(loader))
    scaler = torch.amp.GradScaler("cuda")
    started, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    stream = torch.cuda.Stream()
    started.record()
    losses = []
    for _ in range(options.epochs):
        for x, y in loader:
            with torch.cuda.stream(stream):
                x, y = x.to(device, non_blocking=True), y.cuda(non_blocking=True)
            torch.cuda.current_stream().wait_stream(stream)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                logits = model(x)
                assert logits.dtype == torch.bfloat16
                loss = nn.functional.cross_entropy(logits.flatten(0, 1).float(), y.flatten())
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            losses.append(loss.item())
    ended.record()
    torch.cuda.synchronize()
    assert started.elapsed_time(ended) > 0 and torch.cuda.max_memory_allocated() >= 0
    assert losses[-1] < losses[0] / 2, losses

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
        again = Model(17, 32).cuda().eval()
        again.load_state_dict(torch.load(path, map_location="cuda:0", weights_only=True)["model"])
    with torch.inference_mode():
        sample = text[:2, :-1].cuda()
        torch.testing.assert_close(again(sample), model.eval()(sample))


if __name__ == "__main__":
    main()
