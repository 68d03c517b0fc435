// float16: stored in 16 bits, computed with as float. Bits of __half, but without its operators.
#pragma once
#include <cuda_fp16.h>

class float16 {
 public:
  float16() = default;
  __device__ float16(float x) : data_(__float2half_rn(x)) {}
  __device__ float16(double x) : data_(__double2half(x)) {}
  __device__ float16(int x) : data_(__int2half_rn(x)) {}
  __device__ float16(long long x) : data_(__ll2half_rn(x)) {}
  __device__ float16(unsigned int x) : data_(__uint2half_rn(x)) {}
  __device__ float16(unsigned long long x) : data_(__ull2half_rn(x)) {}
  __device__ float16(bool x) : data_(__int2half_rn(x)) {}
  __device__ float16(__half x) : data_(x) {}
  __device__ operator float() const { return __half2float(data_); }
  __device__ explicit operator __half() const { return data_; }

  __device__ float16& operator+=(float x) { return *this = float(*this) + x; }
  __device__ float16& operator-=(float x) { return *this = float(*this) - x; }
  __device__ float16& operator*=(float x) { return *this = float(*this) * x; }
  __device__ float16& operator/=(float x) { return *this = float(*this) / x; }

 private:
  __half data_;
};

__device__ inline float16 min(float16 a, float16 b) { return fminf(a, b); }
__device__ inline float16 max(float16 a, float16 b) { return fmaxf(a, b); }
__device__ inline bool isnan(float16 x) { return isnan(float(x)); }
__device__ inline bool isinf(float16 x) { return isinf(float(x)); }
__device__ inline bool isfinite(float16 x) { return isfinite(float(x)); }
