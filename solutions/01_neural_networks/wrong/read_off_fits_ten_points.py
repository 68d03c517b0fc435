# exercise: neural.read_off  fails: values seen  says: 10
import numpy as np


def read_off(f, kind):
    places = np.random.default_rng(0).uniform(-2, 2, (10, 2))
    if kind == "plane":
        values = [f(float(x), float(y)) for x, y in places]
        columns = [places[:, 0], places[:, 1], np.ones(10)]
    else:
        values = [f(float(x)) for x, _ in places]
        columns = [places[:, 0] ** power for power in ((1, 0) if kind == "line" else (2, 1, 0))]
    return np.linalg.lstsq(np.stack(columns, 1), np.array(values), rcond=None)[0].tolist()
