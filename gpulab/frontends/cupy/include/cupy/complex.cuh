// complex<float> and complex<double>, bits as cuComplex's and NumPy's.
#pragma once
#include <cuComplex.h>

template <typename T> struct complex;

namespace gpulab {
template <typename T> struct Pair;
template <> struct Pair<float> { typedef cuFloatComplex type; };
template <> struct Pair<double> { typedef cuDoubleComplex type; };

// Rounded after every step, as on the host: so that a kernel divides to the same bits as an array function.
__device__ inline float times(float x, float y) { return __fmul_rn(x, y); }
__device__ inline double times(double x, double y) { return __dmul_rn(x, y); }
}  // namespace gpulab

template <typename T>
struct __align__(2 * sizeof(T)) complex {
  typedef T value_type;

  __device__ complex(T real = 0, T imag = 0) : re_(real), im_(imag) {}
  template <typename U>
  __device__ complex(const complex<U>& z) : re_(z.real()), im_(z.imag()) {}
  __device__ complex(const typename gpulab::Pair<T>::type& z) : re_(z.x), im_(z.y) {}

  __device__ operator typename gpulab::Pair<T>::type() const {
    typename gpulab::Pair<T>::type pair;
    pair.x = re_;
    pair.y = im_;
    return pair;
  }

  __device__ T real() const { return re_; }
  __device__ T imag() const { return im_; }
  __device__ void real(T x) { re_ = x; }
  __device__ void imag(T x) { im_ = x; }

  __device__ complex& operator+=(complex z) { return *this = *this + z; }
  __device__ complex& operator-=(complex z) { return *this = *this - z; }
  __device__ complex& operator*=(complex z) { return *this = *this * z; }
  __device__ complex& operator/=(complex z) { return *this = *this / z; }
  __device__ complex operator-() const { return complex(-re_, -im_); }
  __device__ complex operator+() const { return *this; }

  friend __device__ complex operator+(complex a, complex b) { return complex(a.re_ + b.re_, a.im_ + b.im_); }
  friend __device__ complex operator-(complex a, complex b) { return complex(a.re_ - b.re_, a.im_ - b.im_); }
  friend __device__ complex operator*(complex a, complex b) {
    return complex(a.re_ * b.re_ - a.im_ * b.im_, a.re_ * b.im_ + a.im_ * b.re_);
  }
  // Scaled by the larger part of the divisor, so that its square cannot overflow (Smith's method).
  friend __device__ complex operator/(complex a, complex b) {
    using gpulab::times;
    if (b.re_ == 0 && b.im_ == 0) return complex(a.re_ / fabs(b.re_), a.im_ / fabs(b.re_));
    if (fabs(b.re_) >= fabs(b.im_)) {
      const T ratio = b.im_ / b.re_, scale = 1 / (b.re_ + times(b.im_, ratio));
      return complex(times(a.re_ + times(a.im_, ratio), scale), times(a.im_ - times(a.re_, ratio), scale));
    }
    const T ratio = b.re_ / b.im_, scale = 1 / (b.im_ + times(b.re_, ratio));
    return complex(times(times(a.re_, ratio) + a.im_, scale), times(times(a.im_, ratio) - a.re_, scale));
  }
  friend __device__ bool operator==(complex a, complex b) { return a.re_ == b.re_ && a.im_ == b.im_; }
  friend __device__ bool operator!=(complex a, complex b) { return !(a == b); }
  friend __device__ bool operator<(complex a, complex b) { return a.re_ < b.re_ || (a.re_ == b.re_ && a.im_ < b.im_); }
  friend __device__ bool operator>(complex a, complex b) { return b < a; }
  friend __device__ bool operator<=(complex a, complex b) { return !(b < a); }
  friend __device__ bool operator>=(complex a, complex b) { return !(a < b); }

 private:
  T re_, im_;
};

template <typename T> __device__ inline T real(complex<T> z) { return z.real(); }
template <typename T> __device__ inline T imag(complex<T> z) { return z.imag(); }
template <typename T> __device__ inline complex<T> conj(complex<T> z) { return complex<T>(z.real(), -z.imag()); }
template <typename T> __device__ inline T norm(complex<T> z) { return z.real() * z.real() + z.imag() * z.imag(); }
template <typename T> __device__ inline T abs(complex<T> z) { return hypot(z.real(), z.imag()); }
template <typename T> __device__ inline T arg(complex<T> z) { return atan2(z.imag(), z.real()); }
template <typename T> __device__ inline complex<T> polar(T r, T phi) { return complex<T>(r * cos(phi), r * sin(phi)); }
template <typename T> __device__ inline complex<T> exp(complex<T> z) { return polar(T(exp(z.real())), z.imag()); }
template <typename T> __device__ inline complex<T> log(complex<T> z) { return complex<T>(log(abs(z)), arg(z)); }
template <typename T> __device__ inline complex<T> sqrt(complex<T> z) {
  const T r = abs(z), x = sqrt((r + fabs(z.real())) / 2);
  if (x == 0) return complex<T>(0, 0);
  const T y = fabs(z.imag()) / (2 * x);
  return z.real() >= 0 ? complex<T>(x, copysign(y, z.imag())) : complex<T>(y, copysign(x, z.imag()));
}
template <typename T> __device__ inline complex<T> pow(complex<T> z, complex<T> w) {
  return z == complex<T>(0) ? complex<T>(0) : exp(w * log(z));
}
template <typename T> __device__ inline complex<T> sin(complex<T> z) {
  return complex<T>(sin(z.real()) * cosh(z.imag()), cos(z.real()) * sinh(z.imag()));
}
template <typename T> __device__ inline complex<T> cos(complex<T> z) {
  return complex<T>(cos(z.real()) * cosh(z.imag()), -sin(z.real()) * sinh(z.imag()));
}
template <typename T> __device__ inline bool isnan(complex<T> z) { return isnan(z.real()) || isnan(z.imag()); }
template <typename T> __device__ inline bool isinf(complex<T> z) { return isinf(z.real()) || isinf(z.imag()); }
template <typename T> __device__ inline bool isfinite(complex<T> z) { return isfinite(z.real()) && isfinite(z.imag()); }
