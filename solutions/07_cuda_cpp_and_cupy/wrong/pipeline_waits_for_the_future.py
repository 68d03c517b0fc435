# exercise: cupy.pipeline  fails: right  says: an event that is recorded later
def pipeline(chunks, buffers):
    plan = []
    for k in range(chunks):
        plan.append({"stream": "kernel", "do": "kernel", "chunk": k, "after": [len(plan) + 1]})
        plan.append({"stream": "in", "do": "in", "chunk": k})
        plan.append({"stream": "kernel", "do": "out", "chunk": k})
    return plan
