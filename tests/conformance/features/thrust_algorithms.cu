// feature: Thrust: sort, reduce, scan, transform
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
int main() {
    thrust::device_vector<int> v(500);
    for (int i = 0; i < 500; i++) v[i] = i * 7919 % 500;
    thrust::sort(v.begin(), v.end());
    bool sorted = v[0] == 0 && v[499] == 499;
    thrust::transform(v.begin(), v.end(), v.begin(), thrust::negate<int>());
    int total = thrust::reduce(v.begin(), v.end());
    thrust::inclusive_scan(v.begin(), v.end(), v.begin());
    return !(sorted && total == -124750 && v[499] == total);
}
