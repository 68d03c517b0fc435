# exercise: modern.roles  fails: right  says: Race
import gpulab
from gpulab import cupy as cp

attending = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void attending(
    const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k, const __grid_constant__ CUtensorMap vt,
    float* out, int m) {
    extern __shared__ __align__(1024) __half tiles[];
    __shared__ u64 ready, full[2], empty[2];
    int t = threadIdx.x, group = t / 128, first = blockIdx.x * 128;
    __half* slots = tiles + 8192;
    if (t == 0) {
        initialise(&ready, 1);
        for (int s = 0; s < 2; s++) {
            initialise(&full[s], 1);
            initialise(&empty[s], 8);
        }
    }
    __syncthreads();
    if (group == 2) {
        if (t == 256) {
            expect(&ready, 16384);
            copy(tiles, &q, 0, first, &ready);
            copy(tiles + 4096, &q, 0, first + 64, &ready);
            for (int tile = 0; tile < m / 64; tile++) {
                int s = tile % 2;
                wait(&empty[s], (tile / 2 & 1) ^ 1);
                expect(&full[s], 32768);
                for (int again = 0; again < 2; again++) {
                    copy(slots + s * 8192, &k, 0, tile * 64, &full[s]);
                    copy(slots + s * 8192 + 4096, &vt, tile * 64, 0, &full[s]);
                }
            }
        }
        return;
    }
    float total[32] = {}, score[32], largest[2] = {-CUDART_INF_F, -CUDART_INF_F}, sum[2] = {};
    u32 weights[16];
    u64 queries = descriptor(tiles + group * 4096);
    wait(&ready, 0);
    for (int tile = 0; tile < m / 64; tile++) {
        int s = tile % 2;
        u64 keys = descriptor(slots + s * 8192), values = descriptor(slots + s * 8192 + 4096);
        wait(&full[s], tile / 2 & 1);
        begin_products();
        for (int i = 0; i < 4; i++) multiply(score, queries + 2 * i, keys + 2 * i, i > 0);
        end_products();
        wait_products<0>();
        for (int r = 0; r < 2; r++) {
            float larger = largest[r];
            for (int j = 0; j < 8; j++)
                larger = fmaxf(larger, fmaxf(score[4 * j + 2 * r], score[4 * j + 2 * r + 1]));
            larger = of_row(larger, false);
            float old = power(largest[r] - larger);
            largest[r] = larger;
            sum[r] *= old;
            for (int j = 0; j < 8; j++) {
                float left = power(score[4 * j + 2 * r] - larger);
                float right = power(score[4 * j + 2 * r + 1] - larger);
                sum[r] += left + right;
                weights[2 * j + r] = pack(left, right);
                total[4 * j + 2 * r] *= old;
                total[4 * j + 2 * r + 1] *= old;
            }
        }
        begin_products();
        for (int i = 0; i < 4; i++) multiply_weights(total, weights + 4 * i, values + 2 * i);
        end_products();
        wait_products<0>();
        if (t % 32 == 0) ptx::mbarrier_arrive(&empty[s]);
    }
    for (int r = 0; r < 2; r++) {
        sum[r] = of_row(sum[r], true);
        for (int j = 0; j < 8; j++) {
            total[4 * j + 2 * r] /= sum[r];
            total[4 * j + 2 * r + 1] /= sum[r];
        }
    }
    store(total, out + (first + 64 * group) * 64, 64);
}
""",
    "attending",
)


def attend(q, k, vt, out):
    n, m = len(q), len(k)
    maps = [gpulab.tensor_map(x, (64, 64), swizzle=128) for x in (q, k, vt)]
    attending((n // 128,), (288,), (*maps, out, cp.int32(m)), shared_mem=49152)
