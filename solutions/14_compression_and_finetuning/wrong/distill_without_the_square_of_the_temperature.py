# exercise: compress.distill  fails: right  says: should be
from torch.nn import functional as F


def distill(student, teacher, labels, temperature, alpha):
    log_q = F.log_softmax(student / temperature, -1)
    log_p = F.log_softmax(teacher / temperature, -1)
    soft = F.kl_div(log_q, log_p, reduction="batchmean", log_target=True)
    return alpha * F.cross_entropy(student, labels) + (1 - alpha) * soft
