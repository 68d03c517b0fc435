# exercise: arch.cheapest  fails: right  says: first wrong: medium
from math import ceil


def cheapest(model, offers):
    weights = model["parameters"] * model["bytes_per_parameter"]
    offer = min(offers, key=lambda each: each["price_per_hour"])
    gpus = ceil(weights / (0.8 * offer["memory"]))
    step = max(
        weights / (gpus * offer["bandwidth"]),
        2 * model["parameters"] * model["batch"] / (gpus * offer["peak"]),
    )
    hours = gpus * step * 1e6 / model["batch"] / 3600
    return [offer["name"], gpus, hours * offer["price_per_hour"], hours * offer["watts"] / 1000]
