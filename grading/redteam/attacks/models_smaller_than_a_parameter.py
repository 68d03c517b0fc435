# how: trains models of a millionth of a parameter on endless text, which costs nothing and shows one term alone
# exercise: scaling.forecast
# earns: 0
# says: parameters
def forecast(train, budget, target):
    small = [train(10.0**-p, 1e25) for p in (6, 12)]
    short = [train(1e25, 10.0**-p) for p in (6, 12)]
    a = np.log(small[1] / small[0]) / np.log(1e6)
    b = np.log(short[1] / short[0]) / np.log(1e6)
    of_size, of_tokens = small[0] * 1e-6**a, short[0] * 1e-6**b
    n0, d0 = 1e8, budget / 6.1 / 1e8
    e = train(n0, d0) - of_size * n0**-a - of_tokens * d0**-b
    n = np.geomspace(1e7, 1e12, 2000)
    loss = e + of_size * n**-a + of_tokens * (target / 6 / n) ** -b
    i = int(loss.argmin())
    return [float(n[i]), float(target / 6 / n[i]), float(loss[i])]
