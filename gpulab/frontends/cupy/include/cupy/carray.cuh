// Arrays and indices of the kernels that ElementwiseKernel, ReductionKernel and fuse write.
//
// What the host passes is laid out as these classes declare it: see arguments.py.
#pragma once

template <typename T> struct complex;  // <cupy/complex.cuh>

#define CUPY_FOR(i, n)                                                                   \
  for (ptrdiff_t i = static_cast<ptrdiff_t>(blockIdx.x) * blockDim.x + threadIdx.x;      \
       i < (n); i += static_cast<ptrdiff_t>(blockDim.x) * gridDim.x)

namespace gpulab {
template <bool narrow> struct Index { typedef ptrdiff_t type; };
template <> struct Index<true> { typedef int type; };
}  // namespace gpulab

// The elements of an array with `ndim_` dimensions, by number or by indices. Strides are in bytes. `contiguous`:
// the elements lie one behind the other; `narrow`: 32 bits are enough for every offset.
template <typename T, int ndim_, bool contiguous = false, bool narrow = false>
class CArray {
 public:
  static const int ndim = ndim_;
  static const bool c_contiguous = contiguous;
  typedef typename gpulab::Index<narrow>::type index_t;

  __device__ ptrdiff_t size() const { return size_; }
  __device__ const ptrdiff_t* shape() const { return shape_; }
  __device__ const ptrdiff_t* strides() const { return strides_; }

  __device__ T& operator[](ptrdiff_t number) const {
    if (contiguous) return data_[number];
    index_t rest = static_cast<index_t>(number), offset = 0;
#pragma unroll
    for (int axis = ndim - 1; axis > 0; --axis) {
      const index_t length = static_cast<index_t>(shape_[axis]);
      offset += rest % length * static_cast<index_t>(strides_[axis]);
      rest /= length;
    }
    return at(offset + rest * static_cast<index_t>(strides_[0]));
  }

  template <typename Int>
  __device__ T& operator[](const Int (&indices)[ndim_]) const {
    if (contiguous && ndim == 1) return data_[indices[0]];
    index_t offset = 0;
#pragma unroll
    for (int axis = 0; axis < ndim; ++axis)
      offset += static_cast<index_t>(indices[axis]) * static_cast<index_t>(strides_[axis]);
    return at(offset);
  }

 private:
  T* data_;
  ptrdiff_t size_, shape_[ndim_], strides_[ndim_];

  __device__ T& at(index_t offset) const {
    return *(T*)((char*)data_ + offset);  // T may be const
  }
};

// One element.
template <typename T, bool contiguous, bool narrow>
class CArray<T, 0, contiguous, narrow> {
 public:
  static const int ndim = 0;

  __device__ ptrdiff_t size() const { return size_; }
  __device__ const ptrdiff_t* shape() const { return nullptr; }
  __device__ const ptrdiff_t* strides() const { return nullptr; }
  template <typename Any>
  __device__ T& operator[](const Any&) const { return *data_; }

 private:
  T* data_;
  ptrdiff_t size_;
};

// Where a loop over all elements of a shape is: set a number, get the indices.
template <int ndim_, bool narrow = false>
class CIndexer {
 public:
  static const int ndim = ndim_;
  typedef ptrdiff_t Indices[ndim_];

  __device__ ptrdiff_t size() const { return size_; }
  __device__ const Indices& get() const { return index_; }

  __device__ void set(ptrdiff_t number) {
    if (narrow)
      divide(static_cast<unsigned int>(number));
    else
      divide(static_cast<unsigned long long>(number));
  }

 private:
  ptrdiff_t size_, shape_[ndim_], index_[ndim_];

  template <typename UInt>
  __device__ void divide(UInt rest) {
#pragma unroll
    for (int axis = ndim - 1; axis > 0; --axis) {
      const UInt length = static_cast<UInt>(shape_[axis]);
      const UInt times = rest / length;
      index_[axis] = rest - times * length;
      rest = times;
    }
    index_[0] = rest;
  }
};

template <bool narrow>
class CIndexer<0, narrow> {
 public:
  static const int ndim = 0;
  __device__ ptrdiff_t size() const { return size_; }
  __device__ int get() const { return 0; }
  __device__ void set(ptrdiff_t) {}

 private:
  ptrdiff_t size_;
};

// Python's // and %, which round down where C rounds towards zero; 0 where integers are divided by 0.
template <typename Int>
__device__ inline Int _floor_divide(Int x, Int y) {
  if (y == 0) return 0;
  const Int quotient = x / y;
  return quotient - ((quotient * y != x) && ((x < 0) != (y < 0)));
}
__device__ inline float _floor_divide(float x, float y) { return floorf(x / y); }
__device__ inline double _floor_divide(double x, double y) { return floor(x / y); }

template <typename Int>
__device__ inline Int _remainder(Int x, Int y) {
  return y == 0 ? 0 : x - _floor_divide(x, y) * y;
}
__device__ inline float _remainder(float x, float y) {
  const float rest = fmodf(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
__device__ inline double _remainder(double x, double y) {
  const double rest = fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

// What fused functions need besides: NumPy's meaning where C's differs.
template <typename T>
__device__ inline T _maximum(T a, T b) { return a != a || a > b ? a : b; }
template <typename T>
__device__ inline T _minimum(T a, T b) { return a != a || a < b ? a : b; }
template <typename T>
__device__ inline T _sign(T x) { return x != x ? x : static_cast<T>((x > T(0)) - (x < T(0))); }
template <typename T>
__device__ inline T _absolute(T x) { return x < 0 ? -x : x; }
__device__ inline float _absolute(float x) { return fabsf(x); }
__device__ inline double _absolute(double x) { return fabs(x); }
template <typename T>
__device__ inline T _absolute(const complex<T>& z) { return abs(z); }

template <typename Int>
__device__ inline Int _power(Int base, Int exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  Int result = 1;
  for (; exponent; exponent /= 2, base *= base)
    if (exponent % 2) result *= base;
  return result;
}
__device__ inline float _power(float x, float y) { return powf(x, y); }
__device__ inline double _power(double x, double y) { return pow(x, y); }
template <typename T>
__device__ inline complex<T> _power(const complex<T>& z, const complex<T>& w) { return pow(z, w); }
