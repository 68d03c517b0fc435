"""A real server on loopback, driven by the real generator of load."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.error
import urllib.request

import pytest
import torch

pytest.importorskip("fastapi", reason="the extra `serving` is not installed")

from gpulab.subjects.models import text
from gpulab.subjects.models.config import Config
from gpulab.subjects.models.gpt import GPT, generate
from gpulab.subjects.serving import InvalidDecision, Machine, Request, http, load, metrics

PROMPT = "\nana lost a red"


@pytest.fixture(scope="module")
def gpt():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        return GPT(Config(text.VOCABULARY, context=80, width=16, layers=1, heads=2)).eval()


def first_come(state):
    return {"admit": [seen.number for seen in state.waiting[: state.free_slots]]}


def post(url, body, path="/v1/completions"):
    asked = urllib.request.Request(
        url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())


def expected(gpt, prompt, count):
    said = generate(gpt, torch.tensor([text.encode(prompt)]), count)[0, len(prompt) :].tolist()
    stop = text.encode("\n")[0]
    return text.decode(said[: said.index(stop) + 1] if stop in said else said)


def test_a_completion_is_what_the_model_says_and_counts_its_tokens(gpt):
    with http.Service(gpt, first_come) as service:
        status, answer = post(service.url, {"prompt": PROMPT, "max_tokens": 9})
    assert status == 200
    assert answer["object"] == "text_completion"
    said = expected(gpt, PROMPT, 9)
    assert answer["choices"][0]["text"] == said
    assert answer["usage"]["completion_tokens"] == len(said)
    assert answer["usage"]["prompt_tokens"] == len(PROMPT)


def test_streams_under_load_say_the_same_and_are_timed_token_by_token(gpt):
    trace = [Request(n, 0.005 * n, len(PROMPT), 12) for n in range(20)]
    with http.Service(gpt, first_come, Machine(slots=4, blocks=100)) as service:
        answers = load.open_loop(service.url, trace, [PROMPT] * 20)
        engine = service.result()
    said = expected(gpt, PROMPT, 12)
    assert {(answer.status, answer.error, answer.text) for answer in answers} == {(200, "", said)}
    for answer in answers:
        assert len(answer.tokens) == len(said)
        assert answer.scheduled <= answer.sent <= answer.tokens[0] <= answer.tokens[-1] <= answer.ended
    told = metrics.summary(load.as_run(answers), metrics.SLO(ttft=30))
    assert told["requests"] == 20 and told["SLO kept"] == 1
    assert max(len(step.gave) for step in engine.steps) <= 4
    assert sum(len(step.gave) for step in engine.steps) == 20 * len(said)


@pytest.mark.parametrize(
    "body, words",
    [
        ({"prompt": "Ω", "max_tokens": 3}, "no story has the character"),
        ({"prompt": PROMPT, "max_tokens": 80}, "do not fit into a context of 80"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_sentence(gpt, body, words):
    with http.Service(gpt, first_come) as service:
        status, answer = post(service.url, body)
    assert status == 400
    assert words in answer["error"]["message"]


def test_who_comes_when_too_many_wait_is_sent_away(gpt):
    trace = [Request(n, 0.0, len(PROMPT), 5) for n in range(12)]
    opening = threading.Timer(0.5, lambda: None)

    def late(state):
        """Serves nobody before everybody has had the time to come."""
        if len(state.waiting) == 4 and not opening.ident:
            opening.start()
        return first_come(state) if opening.finished.is_set() else {}

    with http.Service(gpt, late, Machine(slots=1, blocks=100), most_waiting=3) as service:
        answers = load.open_loop(service.url, trace, [PROMPT] * 12)
    assert sorted(answer.status for answer in answers) == [200] * 4 + [503] * 8
    assert "busy" in next(answer.error for answer in answers if answer.status == 503)


def test_an_invalid_decision_ends_all_streams_with_its_sentence_and_is_raised_at_the_end(gpt):
    with (
        pytest.raises(InvalidDecision, match="which has not arrived"),
        http.Service(gpt, lambda state: {"admit": [77]}) as service,
    ):
        answers = load.open_loop(service.url, [Request(0, 0.0, 5, 5)], [PROMPT])
        assert "request 77" in answers[0].error


def test_a_client_that_leaves_frees_its_slot(gpt):
    with http.Service(gpt, first_come, Machine(slots=1, blocks=100)) as service:
        host, port = service.url.removeprefix("http://").split(":")
        body = json.dumps({"prompt": PROMPT, "max_tokens": 60, "stream": True}).encode()
        head = "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        with socket.create_connection((host, int(port))) as client:
            client.sendall(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            client.recv(10)
        until = time.monotonic() + 20
        while (service.engine.running or service.engine.waiting) and time.monotonic() < until:
            time.sleep(0.01)
        assert not service.engine.running
        assert post(service.url, {"prompt": PROMPT, "max_tokens": 2})[0] == 200


def test_a_service_can_be_started_again_and_again_and_leaves_no_thread(gpt):
    before = threading.active_count()
    ports = set()
    for _ in range(3):
        with http.Service(gpt, first_come) as service:
            ports.add(service.url)
            assert post(service.url, {"prompt": PROMPT, "max_tokens": 2})[0] == 200
        service.close()
        with pytest.raises(OSError):
            urllib.request.urlopen(service.url + "/health", timeout=5)
    assert threading.active_count() <= before + 1  # asyncio's pool may keep one


def test_an_interrupt_inside_the_block_ends_the_server(gpt):
    with pytest.raises(KeyboardInterrupt), http.Service(gpt, first_come) as service:
        raise KeyboardInterrupt
    with pytest.raises(OSError):
        urllib.request.urlopen(service.url + "/health", timeout=5)


def test_a_server_that_is_not_there_is_an_error_of_the_answer():
    answers = load.open_loop("http://127.0.0.1:1", [Request(0, 0.0, 5, 5)], [PROMPT])
    assert "refused" in answers[0].error.lower() or "Connect" in answers[0].error
    assert not answers[0].life.ended
