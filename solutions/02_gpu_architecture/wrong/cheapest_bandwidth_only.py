# exercise: arch.cheapest  fails: right  says: many at once
from math import ceil


def cheapest(model, offers):
    weights = model["parameters"] * model["bytes_per_parameter"]
    answers = []
    for offer in offers:
        gpus = ceil(weights / (0.8 * offer["memory"]))
        step = weights / (gpus * offer["bandwidth"])
        hours = gpus * step * 1e6 / model["batch"] / 3600
        answers.append([offer["name"], gpus, hours * offer["price_per_hour"], hours * offer["watts"] / 1000])
    return min(answers, key=lambda answer: answer[2])
