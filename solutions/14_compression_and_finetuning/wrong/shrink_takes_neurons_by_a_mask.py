# exercise: compress.shrink  fails: right  says: topk(count).indices
from torch.nn import functional as F


def shrink(x, up, up_bias, down, down_bias, count):
    scores = up.norm(dim=1) * down.norm(dim=0)
    stay = scores >= scores.topk(count).values[-1]
    return F.gelu(x @ up[stay].T + up_bias[stay]) @ down[:, stay].T + down_bias
