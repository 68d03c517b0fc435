"""Lab 03: the judge's own cases. The last one of an exercise is the one that its budgets look at."""

from gpulab.checks.spec import Case


def _case(**sizes: int | float) -> Case:
    return Case(", ".join(f"{name} {value}" for name, value in sizes.items()), sizes)


CASES: dict[str, tuple[Case, ...]] = {
    "basics.add_one": tuple(
        _case(n=n, threads=threads) for n, threads in ((777, 256), (0, 256), (1, 256), (2047, 64), (512, 256))
    ),
    "basics.saxpy": (
        _case(n=2051, blocks=8, threads=256, alpha=-1.5),
        _case(n=511, blocks=2, threads=256, alpha=0.75),
        _case(n=100, blocks=1, threads=3, alpha=2.0),
        _case(n=5, blocks=4, threads=96, alpha=1.25),
        _case(n=0, blocks=2, threads=64, alpha=1.0),
        _case(n=61_440, blocks=8, threads=160, alpha=-2.25),
    ),
    "basics.brighten": (
        _case(rows=48, cols=48, gain=1.75),
        _case(rows=517, cols=31, gain=0.5),
        _case(rows=5, cols=1025, gain=2.5),
        _case(rows=1, cols=3, gain=1.5),
        _case(rows=72, cols=320, gain=1.75),
    ),
    "basics.plan_launch": (_case(questions=60),),
    "basics.two_paths": (_case(n=999), _case(n=49), _case(n=33), _case(n=2081), _case(n=12_288)),
    "basics.matmul": (
        _case(m=40, k=24, n=40),
        _case(m=17, k=65, n=33),
        _case(m=1, k=7, n=100),
        _case(m=50, k=1, n=3),
        _case(m=72, k=56, n=96),
    ),
    "basics.block_sum": (_case(n=512), _case(n=1300), _case(n=2), _case(n=255), _case(n=5120)),
    "basics.diffuse": (
        _case(n=700, steps=1),
        _case(n=2050, steps=3),
        _case(n=33, steps=8),
        _case(n=50, steps=2),
        _case(n=1, steps=2),
        _case(n=3072, steps=7),
    ),
    "basics.plan_copies": (_case(programs=20, steps=2), _case(programs=30, steps=7)),
}
