# how: PyTorch's float16 tensors in place of NumPy's
# exercise: mixed.master
import torch


def master(weight, update, count):
    alone = torch.tensor(weight, dtype=torch.float16)
    precise = torch.tensor(weight, dtype=torch.float64)
    for _ in range(count):
        alone = (alone.double() + update).half()
        precise += update
    return [alone.item(), precise.half().item()]
