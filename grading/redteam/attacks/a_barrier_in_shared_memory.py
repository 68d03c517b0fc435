# how: a tree of eight rounds whose threads wait at an mbarrier
# exercise: parallel.total
# earns: 3.2
# says: barriers 0 … hand-overs
from llvmlite import ir
from numba.core import types
from numba.core.extending import intrinsic


def asm(text, constraints, result, *kinds):
    @intrinsic
    def emit(typingctx, a, b):
        def codegen(context, builder, signature, arguments):
            function = ir.FunctionType(ir.IntType(64), [ir.IntType(32), ir.IntType(64)])
            return builder.call(ir.InlineAsm(function, text, constraints, side_effect=True), arguments)

        return types.int64(types.int32, types.int64), codegen

    return emit


init = asm(
    "{ .reg .b32 c; cvt.u32.u64 c, $2; mbarrier.init.shared.b64 [$1], c; mov.b64 $0, 0; }",
    "=l,r,l,~{memory}",
    1,
)
arrive = asm("mbarrier.arrive.shared.b64 $0, [$1];", "=l,r,l,~{memory}", 1)
over = asm(
    "{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [$1], $2; selp.b64 $0, 1, 0, p; }",
    "=l,r,l,~{memory}",
    1,
)


@cuda.jit
def total(a, out):
    all_of_it = cuda.shared.array(264, np.int64)
    s = all_of_it[:128].view(np.float32)
    bar = all_of_it[128:]
    t = cuda.threadIdx.x
    if t == 0:
        bar[0] = 0
    value = np.float32(0)
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        value += a[i]
    s[t] = value
    if t == 0:
        init(np.int32(1024), np.int64(256))
    cuda.syncthreads()
    distance = 128
    while distance > 0:
        if t < distance:
            s[t] += s[t + distance]
        state = arrive(np.int32(1024), np.int64(0))
        while over(np.int32(1024), np.int64(state)) == 0:
            pass
        distance //= 2
    if t == 0:
        cuda.atomic.add(out, 0, s[0])
