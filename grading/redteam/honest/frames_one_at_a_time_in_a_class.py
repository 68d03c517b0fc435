# how: a class that holds what is in the machine, and its two events as methods
# exercise: edge.deadline
from dataclasses import dataclass, field


@dataclass
class Machine:
    arrivals: list
    times: list
    free: float = 0
    next_one: "int | None" = None
    dropped: int = 0
    ages: list = field(default_factory=list)

    def run(self, frame, begins):
        self.free = begins + self.times[frame]
        self.ages.append(self.free - self.arrivals[frame])

    def frees_until(self, now):
        if self.next_one is not None and self.free <= now:
            frame, self.next_one = self.next_one, None
            self.run(frame, self.free)

    def comes(self, frame, now):
        self.frees_until(now)
        if self.free <= now:
            return self.run(frame, now)
        self.dropped += self.next_one is not None
        self.next_one = frame


def deadline(arrivals, times, limit):
    machine = Machine(arrivals, times)
    for each in enumerate(arrivals):
        machine.comes(*each)
    machine.frees_until(float("inf"))
    late = len([age for age in machine.ages if age > limit])
    return [len(machine.ages) - late, late, machine.dropped, max(machine.ages)]
