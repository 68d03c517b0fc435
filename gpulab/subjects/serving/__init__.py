"""Serving language models: requests and traces, an engine that asks a policy in each step, and metrics.

    machine = serving.Machine(slots=8, blocks=1000)
    ran = serving.run(machine, serving.traces.alternating(64), serving.policies.static)
    serving.metrics.summary(ran)

On a virtual clock all of it is arithmetic. `model` has the same engine on a real small GPT, `http` behind a
real HTTP server, `load` a generator of load; the first two need PyTorch and FastAPI. `replicas` has
several caches behind a router.
"""

from . import metrics, policies, queues, traces
from .decisions import Decider, admission, decided_by, policy
from .engine import Decision, Engine, InvalidDecision, Life, Run, Seen, Service, State, Step, run
from .machine import Machine, Times, Units, Work, fitting, times
from .metrics import SLO
from .requests import Request
from .stays import stays

__all__ = [
    "SLO",
    "Decider",
    "Decision",
    "Engine",
    "InvalidDecision",
    "Life",
    "Machine",
    "Request",
    "Run",
    "Seen",
    "Service",
    "State",
    "Step",
    "Times",
    "Units",
    "Work",
    "admission",
    "decided_by",
    "fitting",
    "metrics",
    "policies",
    "policy",
    "queues",
    "run",
    "stays",
    "times",
    "traces",
]
