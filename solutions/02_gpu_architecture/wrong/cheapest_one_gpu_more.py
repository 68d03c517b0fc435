# exercise: arch.cheapest  fails: right  says: first wrong: exact fit


def cheapest(model, offers):
    weights = model["parameters"] * model["bytes_per_parameter"]
    answers = []
    for offer in offers:
        gpus = int(weights / (0.8 * offer["memory"])) + 1
        reading = weights / (gpus * offer["bandwidth"])
        computing = 2 * model["parameters"] * model["batch"] / (gpus * offer["peak"])
        hours = gpus * max(reading, computing) * 1e6 / model["batch"] / 3600
        answers.append([offer["name"], gpus, hours * offer["price_per_hour"], hours * offer["watts"] / 1000])
    return min(answers, key=lambda answer: answer[2])
