# how: a record for each request in one dictionary, and percentiles by the nearest rank in a helper
# exercise: serve.measure
import math


def nearest_rank(values, percent):
    if not values:
        return None
    values = sorted(values)
    return values[math.ceil(len(values) * percent / 100) - 1]


def measure(log, ttft, tpot):
    requests = {}
    for number, event, time in log:
        requests.setdefault(number, {"due": [], "token": [], "error": []}).setdefault(event, []).append(time)
    good = [r for r in requests.values() if not r["error"]]
    firsts, paces, kept = [], [], 0
    for r in good:
        times = sorted(r["token"])
        firsts.append(times[0] - r["due"][0])
        pace = 0
        if len(times) >= 2:
            pace = (times[-1] - times[0]) / (len(times) - 1)
            paces.append(pace)
        if firsts[-1] <= ttft and pace <= tpot:
            kept += 1
    tokens = sum(len(r["token"]) for r in requests.values())
    begin = min(r["due"][0] for r in requests.values())
    seconds = (max(time for *_, time in log) - begin) / 1000
    return (
        nearest_rank(firsts, 50),
        nearest_rank(firsts, 99),
        nearest_rank(paces, 99),
        tokens / seconds,
        kept / seconds,
    )
