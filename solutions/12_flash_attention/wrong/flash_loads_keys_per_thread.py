# exercise: attention.flash  fails: loaded bytes  says: naive 4,259,840
import math

from numba import float32

from gpulab import cuda

D = 64


@cuda.jit
def flash(q, k, v, out, lse):
    mine = cuda.local.array(D, float32)
    total = cuda.local.array(D, float32)
    row = cuda.grid(1)
    for i in range(D):
        mine[i] = q[row, i] if row < q.shape[0] else float32(0)
        total[i] = float32(0)
    m, s = float32(-math.inf), float32(0)
    for first in range(0, k.shape[0], 16):
        for j in range(min(16, k.shape[0] - first)):
            score = float32(0)
            for i in range(D):
                score += mine[i] * k[first + j, i]
            larger = max(m, score)
            old = math.exp(m - larger)
            weight = math.exp(score - larger)
            s = s * old + weight
            for i in range(D):
                total[i] = total[i] * old + weight * v[first + j, i]
            m = larger
    if row < q.shape[0]:
        for i in range(D):
            out[row, i] = total[i] / max(s, float32(1))
        lse[row] = m + math.log(s)
