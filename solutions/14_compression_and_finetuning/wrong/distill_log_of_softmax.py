# exercise: compress.distill  fails: right  says: logits of hundreds
from torch.nn import functional as F


def distill(student, teacher, labels, temperature, alpha):
    q = (student / temperature).softmax(-1)
    p = (teacher / temperature).softmax(-1)
    soft = (p * (p.log() - q.log())).sum(-1).mean()
    return alpha * F.cross_entropy(student, labels) + (1 - alpha) * temperature**2 * soft
