# exercise: training_project.timetable  fails: right  says: there is room for 1
def timetable(devices, batches, times, message, room):
    orders = []
    for device in range(devices):
        warm = min(devices - 1 - device, batches)
        order = [f"F{i}" for i in range(warm)]
        for i in range(batches):
            order += [f"F{warm + i}"] * (warm + i < batches) + [f"B{i}", f"W{i}"]
        orders.append(order)
    return orders
