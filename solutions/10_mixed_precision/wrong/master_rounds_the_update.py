# exercise: mixed.master  fails: right  says: should be
import numpy as np


def master(weight, update, count):
    alone = np.float16(weight)
    copy = np.float16(weight)
    for _ in range(count):
        alone = alone + np.float16(update)
        copy = np.float16(copy + np.float32(update))
    return [float(alone), float(copy)]
