// cuComplex.h in which one name works for both precisions, as RawKernel(translate_cucomplex=True) promises.
#pragma once
#include <cuComplex.h>
#include <cupy/complex.cuh>

__device__ inline cuFloatComplex cuCadd(cuFloatComplex a, cuFloatComplex b) { return cuCaddf(a, b); }
__device__ inline cuFloatComplex cuCsub(cuFloatComplex a, cuFloatComplex b) { return cuCsubf(a, b); }
__device__ inline cuFloatComplex cuCmul(cuFloatComplex a, cuFloatComplex b) { return cuCmulf(a, b); }
__device__ inline cuFloatComplex cuCfma(cuFloatComplex a, cuFloatComplex b, cuFloatComplex c) {
  return cuCfmaf(a, b, c);
}
__device__ inline cuFloatComplex cuConj(cuFloatComplex a) { return cuConjf(a); }
__device__ inline float cuCabs(cuFloatComplex a) { return cuCabsf(a); }
__device__ inline float cuCreal(cuFloatComplex a) { return cuCrealf(a); }
__device__ inline float cuCimag(cuFloatComplex a) { return cuCimagf(a); }

// Division as arrays divide.
namespace gpulab {
__device__ inline cuFloatComplex divide(cuFloatComplex a, cuFloatComplex b) { return complex<float>(a) / complex<float>(b); }
__device__ inline cuDoubleComplex divide(cuDoubleComplex a, cuDoubleComplex b) {
  return complex<double>(a) / complex<double>(b);
}
}  // namespace gpulab
#define cuCdiv gpulab::divide
#define cuCdivf gpulab::divide
