# exercise: mixed.master  fails: right  says: should be
import numpy as np


def master(weight, update, count):
    end = float(np.float16(weight + update * count))
    return [end, end]
