# exercise: formats.order  fails: right  says: never added to slot 0
def order(n):
    plan, apart = [], 1
    while apart < n:
        plan += [[slot, slot + apart] for slot in range(0, n - 2 * apart + 1, 2 * apart)]
        apart *= 2
    return plan
