# how: a queue of micro-batches that are under way, popped when they go back
# exercise: parallel.schedule
from collections import deque


def schedule(devices, batches):
    plan = []
    for device in range(devices):
        steps, under_way, next_one = [], deque(), 0
        most = devices - device
        while next_one < batches or under_way:
            if next_one < batches and len(under_way) < most:
                steps.append(f"F{next_one}")
                under_way.append(next_one)
                next_one += 1
            else:
                steps.append(f"B{under_way.popleft()}")
        plan.append(steps)
    return plan
