# exercise: tiles.convert  fails: sectors  says: along which axis
from gpulab.triton.experimental import gluon
from gpulab.triton.experimental.gluon import language as gl


@gluon.jit
def convert_kernel(x, y, n, M: gl.constexpr, num_warps: gl.constexpr):
    along: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [num_warps, 1], [1, 0])
    down: gl.constexpr = along
    row = gl.arange(0, M, gl.SliceLayout(1, along))[:, None]
    column = gl.program_id(0) * 32 + gl.arange(0, 32, gl.SliceLayout(0, along))[None, :]
    tile = gl.convert_layout(gl.load(x + row * n + column), down)
    e = gl.exp(tile - gl.expand_dims(gl.max(tile, 0), 0))
    row = gl.arange(0, M, gl.SliceLayout(1, down))[:, None]
    column = gl.program_id(0) * 32 + gl.arange(0, 32, gl.SliceLayout(0, down))[None, :]
    gl.store(y + column * M + row, e / gl.expand_dims(gl.sum(e, 0), 0))


def convert(x, y):
    m, n = x.shape
    convert_kernel[n // 32,](x, y, n, M=m, num_warps=4)
