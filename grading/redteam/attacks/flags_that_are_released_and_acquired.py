# how: a tree of eight rounds whose warps wait for flags that are released and acquired
# exercise: parallel.total
# earns: 3.2
# says: barriers 0 … hand-overs
# slow: yes
from llvmlite import ir
from numba.core import types
from numba.core.extending import intrinsic


def asm(text, constraints):
    @intrinsic
    def emit(typingctx, a, b):
        def codegen(context, builder, signature, arguments):
            function = ir.FunctionType(ir.IntType(32), [ir.IntType(32), ir.IntType(32)])
            return builder.call(ir.InlineAsm(function, text, constraints, side_effect=True), arguments)

        return types.int32(types.int32, types.int32), codegen

    return emit


release = asm("st.release.cta.shared.u32 [$1], $2; mov.b32 $0, 0;", "=r,r,r,~{memory}")
acquire = asm("ld.acquire.cta.shared.u32 $0, [$1];", "=r,r,r,~{memory}")


@cuda.jit
def total(a, out):
    all_of_it = cuda.shared.array(264, np.float32)
    arrived = all_of_it[256:].view(np.int32)
    t = cuda.threadIdx.x
    value = np.float32(0)
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        value += a[i]
    all_of_it[t] = value
    if t < 8:
        arrived[t] = 0
    cuda.syncthreads()
    distance, wanted = 128, 1
    while distance > 0:
        if t < distance:
            all_of_it[t] += all_of_it[t + distance]
        cuda.syncwarp()
        if t % 32 == 0:
            release(np.int32(1024 + 4 * (t // 32)), np.int32(wanted))
        for w in range(8):
            while acquire(np.int32(1024 + 4 * w), np.int32(0)) < wanted:
                pass
        distance //= 2
        wanted += 1
    if t == 0:
        cuda.atomic.add(out, 0, all_of_it[0])
