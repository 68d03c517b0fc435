# exercise: serve.measure  fails: right  says: first wrong: a late sender

from math import ceil


def measure(log, ttft, tpot):
    due, tokens, failed = {}, {}, set()
    for request, event, time in log:
        if event == "sent":
            due[request] = time
        if event == "token":
            tokens.setdefault(request, []).append(time)
        if event == "error":
            failed.add(request)
    first, pace, kept = [], [], 0
    for request in due.keys() - failed:
        times = sorted(tokens[request])
        first.append(times[0] - due[request])
        between = (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 0
        if len(times) > 1:
            pace.append(between)
        kept += first[-1] <= ttft and between <= tpot

    def percentile(values, percent):
        return sorted(values)[ceil(percent * len(values) / 100) - 1] if values else None

    seconds = (max(time for _, _, time in log) - min(due.values())) / 1000
    rates = [sum(map(len, tokens.values())) / seconds, kept / seconds]
    return [percentile(first, 50), percentile(first, 99), percentile(pace, 99), *rates]
