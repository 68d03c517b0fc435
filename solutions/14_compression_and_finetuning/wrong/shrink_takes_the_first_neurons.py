# exercise: compress.shrink  fails: right  says: should be
from torch.nn import functional as F


def shrink(x, up, up_bias, down, down_bias, count):
    return F.gelu(x @ up[:count].T + up_bias[:count]) @ down[:, :count].T + down_bias
