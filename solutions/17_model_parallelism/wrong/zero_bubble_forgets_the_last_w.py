# exercise: parallel.zero_bubble  fails: right  says: never does W
def zero_bubble(devices, batches):
    orders = []
    for device in range(devices):
        warm = devices - 1 - device
        order = [f"F{i}" for i in range(warm)]
        for i in range(batches):
            if warm + i < batches:
                order.append(f"F{warm + i}")
            order.append(f"B{i}")
            if i >= device:
                order.append(f"W{i - device}")
        orders.append(order)
    return orders
