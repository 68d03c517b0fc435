# exercise: training_project.timetable  fails: time, slow links, time, six devices  says: naive 32.3
def timetable(devices, batches, times, message, room):
    orders = []
    for device in range(devices):
        warm = min(devices - 1 - device, room - 1, batches)
        order = [f"F{i}" for i in range(warm)]
        for i in range(batches):
            order += [f"F{warm + i}"] * (warm + i < batches) + [f"B{i}", f"W{i}"]
        orders.append(order)
    return orders
