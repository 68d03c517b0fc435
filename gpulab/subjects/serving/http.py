"""A small GPT behind HTTP, in the form of OpenAI's completions: the engine, a thread, FastAPI and uvicorn.

    with http.Service(pretrained.trained(), policy) as service:
        ...  # POST to service.url + "/v1/completions"

Tokens are sent as they are made, as server-sent events (``"stream": true``), or together. The server listens
on this machine only, on a port that is free, and is gone when the block is left, also by an interrupt.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import socket
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from gpulab.foundation.errors import Message
from gpulab.subjects.models import text
from gpulab.subjects.models.gpt import GPT

from . import decision_errors
from .engine import Engine, InvalidDecision, Policy, Run
from .machine import Machine
from .model import OnModel
from .requests import Request


class ServerMissing(Message, ImportError):
    """FastAPI or uvicorn is not installed; the message says how to get them."""


try:
    import uvicorn
    from fastapi import FastAPI
    from fastapi import Request as HTTPRequest
    from fastapi.responses import JSONResponse, StreamingResponse
    from pydantic import BaseModel, Field
except ModuleNotFoundError as missing:
    raise ServerMissing(decision_errors.no_server(missing.name or "FastAPI")) from None

NAME = "stories"
PATIENCE = 10.0  # seconds to start, and to end


class Completion(BaseModel):
    """What a client posts; what else OpenAI's clients may say is not looked at."""

    prompt: str = Field(min_length=1)
    max_tokens: int = Field(16, ge=1)
    stream: bool = False
    model: str = NAME
    priority: int = 0


@dataclass
class _Asked:
    """A request on its way from its handler to the engine's thread, and where its tokens go."""

    request: Request
    prompt: list[int]
    loop: asyncio.AbstractEventLoop
    tokens: asyncio.Queue[int | Exception | None]  # None at the end

    def give(self, token: int | Exception | None) -> None:
        """Called from the engine's thread. Nothing waits on a loop that is closed."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.tokens.put_nowait, token)


class Service:
    """Serves a GPT on text of `gpulab.models.text` as long as its ``with`` block lasts.

    `policy` is asked in each step, as on a virtual clock. Who comes when all slots are busy and
    `most_waiting` requests wait is sent away with status 503. Leaving the block raises InvalidDecision where
    the policy made one.
    """

    def __init__(
        self,
        model: GPT,
        policy: Policy,
        machine: Machine | None = None,
        *,
        most_waiting: int = 1000,
    ) -> None:
        self.policy, self.most_waiting = policy, most_waiting
        self.context = model.config.context
        self._prompts: dict[int, list[int]] = {}
        self._on_model = OnModel(model, self._prompts, stop=text.encode("\n")[0])
        self.engine = Engine(machine or Machine(slots=8, blocks=40 * 8), self._on_model)
        self.error: Exception | None = None
        self._inbox: queue.SimpleQueue[_Asked | int | None] = queue.SimpleQueue()
        self._asked: dict[int, _Asked] = {}
        self._numbers = count()
        self._ending = threading.Event()
        self._threads: list[threading.Thread] = []

    # ------------------------------------------------------------ start and end

    def __enter__(self) -> Service:
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        config = uvicorn.Config(
            self._app(), log_level="error", lifespan="off", timeout_graceful_shutdown=1, access_log=False
        )
        self._server = uvicorn.Server(config)
        self._zero = time.perf_counter()
        for work in (lambda: self._server.run(sockets=[listening]), self._serve):
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            self._threads.append(thread)
        try:
            self._wait_for_start()
        except BaseException:  # an interrupt, too: nothing is left behind
            self.close()
            raise
        return self

    def _wait_for_start(self) -> None:
        until = time.monotonic() + PATIENCE
        while not self._server.started:
            if time.monotonic() > until or not self._threads[0].is_alive():
                raise RuntimeError(f"the server did not start within {PATIENCE:g} s")
            time.sleep(0.005)

    def __exit__(self, kind: Any, *rest: Any) -> None:
        self.close()
        if self.error and kind is None:
            raise self.error

    def close(self) -> None:
        """End both threads; whoever still waits for an answer gets an error. May be called twice."""
        self._ending.set()
        self._inbox.put(None)
        self._threads[1].join(PATIENCE)
        self._server.should_exit = True
        self._threads[0].join(PATIENCE)
        if self._threads[0].is_alive():
            self._server.force_exit = True

    def now(self) -> float:
        """Seconds since the start, on the engine's clock."""
        return time.perf_counter() - self._zero

    def result(self) -> Run:
        """What the engine has done so far."""
        return self.engine.result()

    # ------------------------------------------------------------ the engine's thread

    def _serve(self) -> None:
        try:
            while not self._ending.is_set():
                self._step()
        except Exception as error:
            self.error = error
        finally:
            self._ending.set()
            self._take()
            for asked in self._asked.values():
                asked.give(self.error or RuntimeError("the server is being shut down"))

    def _step(self) -> None:
        engine = self.engine
        self._take()
        if not (engine.waiting or engine.running):
            self._take(self._inbox.get())  # nothing to do: sleep until somebody comes
            return
        engine.now = self.now()
        step = engine.step(self.policy(engine.state()))
        if step is None:  # the policy waits for company
            time.sleep(0.001)
            return
        for number in step.gave:
            if number in self._asked:
                self._asked[number].give(self._on_model.tokens[number][-1])
        for number in step.ended:
            self._forget(number)

    def _take(self, first: _Asked | int | None = None) -> None:
        """Take in what has come: requests, and the numbers of those that nobody waits for any more."""
        told: list[_Asked | int | None] = [first]
        while not self._inbox.empty():
            told.append(self._inbox.get())
        for each in told:
            if isinstance(each, _Asked):
                number = each.request.number
                self._asked[number], self._prompts[number] = each, each.prompt
                self.engine.add(each.request)
            elif each is not None and each in self._asked:
                self.engine.drop(each)
                self._forget(each)

    def _forget(self, number: int) -> None:
        self._asked.pop(number).give(None)
        self._prompts.pop(number, None)
        self._on_model.forget(number)

    # ------------------------------------------------------------ HTTP

    def _app(self) -> FastAPI:
        app = FastAPI(title="gpulab.serving", openapi_url=None)

        @app.get("/health")
        async def health() -> JSONResponse:
            ending = self._ending.is_set()
            return JSONResponse({"status": "ending" if ending else "ok"}, 503 if ending else 200)

        @app.get("/v1/models")
        async def models() -> dict[str, Any]:
            return {"object": "list", "data": [{"id": NAME, "object": "model", "owned_by": "gpulab"}]}

        @app.post("/v1/completions", response_model=None)
        async def completions(asked: Completion, http: HTTPRequest) -> JSONResponse | StreamingResponse:
            return await self._complete(asked)

        return app

    async def _complete(self, asked: Completion) -> JSONResponse | StreamingResponse:
        try:
            prompt = text.encode(asked.prompt)
        except ValueError as error:
            return _refused(400, str(error))
        if len(prompt) + asked.max_tokens > self.context:
            return _refused(
                400,
                f"{len(prompt)} tokens of prompt and {asked.max_tokens} of output do not fit into a context "
                f"of {self.context}",
            )
        machine = self.engine.machine
        if machine.blocks_for(len(prompt) + asked.max_tokens) > machine.blocks:
            return _refused(400, "that is longer than the cache")
        there = len(self._asked) + self._inbox.qsize()
        if self._ending.is_set() or there >= machine.slots + self.most_waiting:
            return _refused(503, "the server is busy; come again later", {"Retry-After": "1"})
        request = Request(
            next(self._numbers), self.now(), len(prompt), asked.max_tokens, priority=asked.priority
        )
        waiting = _Asked(request, prompt, asyncio.get_running_loop(), asyncio.Queue())
        self._inbox.put(waiting)
        if asked.stream:
            return StreamingResponse(self._events(waiting), media_type="text/event-stream")
        said: list[int] = []
        try:
            async for token in self._tokens(waiting):
                said.append(token)
        except Exception as error:
            return _refused(500, str(error))
        why = "stop" if said and said[-1] == self._on_model.stop else "length"
        made = len(said)
        usage = {"prompt_tokens": len(prompt), "completion_tokens": made, "total_tokens": len(prompt) + made}
        return JSONResponse(_completion(request.number, text.decode(said), why) | {"usage": usage})

    async def _tokens(self, asked: _Asked) -> AsyncIterator[int]:
        """The tokens as they are made; tells the engine when nobody wants more of them."""
        try:
            while (token := await asked.tokens.get()) is not None:
                if isinstance(token, Exception):
                    raise token
                yield token
        finally:
            self._inbox.put(asked.request.number)

    async def _events(self, asked: _Asked) -> AsyncIterator[str]:
        why = "length"
        try:
            async for token in self._tokens(asked):
                why = "stop" if token == self._on_model.stop else "length"
                yield _event(_completion(asked.request.number, text.decode([token]), None))
            yield _event(_completion(asked.request.number, "", why))
        except (InvalidDecision, RuntimeError) as error:
            yield _event({"error": {"message": str(error), "type": "server_error"}})
        yield "data: [DONE]\n\n"


def _completion(number: int, said: str, why: str | None) -> dict[str, Any]:
    choice = {"index": 0, "text": said, "finish_reason": why, "logprobs": None}
    return {
        "id": f"cmpl-{number}", "object": "text_completion", "created": int(time.time()), "model": NAME,
        "choices": [choice],
    }  # fmt: skip


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"


def _refused(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return JSONResponse({"error": {"message": message, "type": kind}}, status, headers)
