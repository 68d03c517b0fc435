# exercise: parallel.schedule  fails: right  says: waits forever
def schedule(devices, batches):
    orders = []
    for device in range(devices):
        warm = min(device, batches)
        order = [f"F{i}" for i in range(warm)]
        for i in range(batches - warm):
            order += [f"B{i}", f"F{warm + i}"]
        orders.append(order + [f"B{i}" for i in range(batches - warm, batches)])
    return orders
