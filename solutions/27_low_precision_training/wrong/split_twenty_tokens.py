# exercise: scaling.split  fails: regret  says: best
import math


def split(law, flops, served):
    # 6 · N · 20 · N + 2 · N · served = flops
    return (math.sqrt(4 * served**2 + 480 * flops) - 2 * served) / 240
