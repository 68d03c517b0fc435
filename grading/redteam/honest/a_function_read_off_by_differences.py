# how: nested functions with type hints; differences of values at other places
# exercise: neural.read_off
from collections.abc import Callable


def read_off(f: Callable[..., float], kind: str) -> list[float]:
    """The parameters, from as many values as there are of them."""

    def of_line() -> list[float]:
        first, second = (f(x) for x in (1, 2))
        return [(slope := second - first), first - slope]

    def of_plane() -> list[float]:
        both, *one = f(1, 1), f(0, 1), f(1, 0)
        a, b = (both - each for each in one)
        return [a, b, both - a - b]

    def of_parabola() -> list[float]:
        y0, y1, y2 = map(f, range(3))
        a = (y2 - 2 * y1 + y0) / 2
        return [a, y1 - y0 - a, y0]

    return {"line": of_line, "plane": of_plane}.get(kind, of_parabola)()
