# how: the formula of Pollaczek and Khinchine in terms of utilisation
# exercise: serve.queue
def queue(rate, service, cv, limit):
    rho = rate * service
    slack = limit - service
    half_spread = (1 + cv * cv) / 2
    most = 0.0
    if slack > 0:
        most = slack / (service * service * half_spread + slack * service)
    if rho >= 1:
        return rho, None, None, most
    wait = rho / (1 - rho) * half_spread * service
    return rho, wait + service, rate * (wait + service), most
