# exercise: parallel.stages  fails: slowest stage  says: 10 units
def stages(times, devices):
    each, rest = divmod(len(times), devices)
    return [each + (stage < rest) for stage in range(devices)]
