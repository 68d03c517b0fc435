"""A generator of load: sends requests to an OpenAI-style server and notes when each token comes back.

It is **open-loop**: a request leaves at its time of the trace, whether or not earlier ones are answered, and
its times count from when it was to leave. It speaks HTTP/1.1 over asyncio and needs nothing else.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from .engine import Life, Run
from .machine import Machine
from .requests import Request


@dataclass(frozen=True)
class Answer:
    """What became of one request, seconds from the start of the load.

    `scheduled` is when it was to leave, `sent` when it left. `error` is empty where all went well.
    """

    request: Request
    scheduled: float
    sent: float
    tokens: tuple[float, ...] = ()
    text: str = ""
    status: int = 0
    error: str = ""
    ended: float = 0.0

    @property
    def life(self) -> Life:
        """In the form that `metrics` takes; its arrival is when the request was to leave."""
        life = Life(self.request, tokens=list(self.tokens))
        life.stopped = not self.error
        return life


def as_run(answers: Sequence[Answer]) -> Run:
    """Answers in the form that `metrics` takes; there are no steps to be seen from outside."""
    return Run(Machine(1, 1), tuple(answer.life for answer in answers), ())


def open_loop(
    url: str,
    trace: Sequence[Request],
    prompts: Sequence[str],
    *,
    patience: float = 30.0,
    path: str = "/v1/completions",
) -> list[Answer]:
    """Send each request of a trace at its time, with a prompt each, and wait for all answers.

    Works inside and outside a notebook; an interrupt ends the requests that are under way. A request that is
    not through after `patience` seconds is given up.
    """

    async def send_all() -> list[Answer]:
        zero = time.perf_counter()
        sending = [
            _send(url + path, request, prompt, zero, patience)
            for request, prompt in zip(trace, prompts, strict=True)
        ]
        return list(await asyncio.gather(*sending))

    return _in_thread(send_all)


def _in_thread(work: Callable[[], Any]) -> Any:
    """Run a coroutine in a thread with a loop of its own: a notebook's own loop is busy with the cell."""
    loop = asyncio.new_event_loop()
    found: list[Any] = []
    task: list[asyncio.Task[Any]] = []

    def run() -> None:
        asyncio.set_event_loop(loop)
        task.append(loop.create_task(work()))
        try:
            found.append(loop.run_until_complete(task[0]))
        except BaseException as error:
            found.append(error)
        finally:
            loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.1)
    except BaseException:
        if task:
            loop.call_soon_threadsafe(task[0].cancel)
        thread.join(5)
        raise
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


async def _send(url: str, request: Request, prompt: str, zero: float, patience: float) -> Answer:
    def now() -> float:
        return time.perf_counter() - zero

    def told(text: str) -> None:
        times.append(now())
        said.append(text)

    await asyncio.sleep(max(0.0, request.arrival - now()))
    sent, times, said = now(), list[float](), list[str]()
    status, error = 0, ""
    body = {
        "model": "stories", "prompt": prompt, "max_tokens": request.most, "stream": True,
        "priority": request.priority,
    }  # fmt: skip
    try:
        async with asyncio.timeout(patience):
            status, error = await _post(url, body, told)
    except TimeoutError:
        error = f"no end after {patience:g} s"
    except (OSError, asyncio.IncompleteReadError, ValueError) as problem:
        error = f"{type(problem).__name__}: {problem}"
    return Answer(request, request.arrival, sent, tuple(times), "".join(said), status, error, now())


async def _post(url: str, body: dict[str, Any], told: Callable[[str], Any]) -> tuple[int, str]:
    """POST JSON; `told` gets the text of each server-sent event. Returns the status and what went wrong."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        data = json.dumps(body).encode()
        head = (
            f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + data)
        await writer.drain()
        status = int((await reader.readuntil(b"\r\n")).split()[1])
        headers = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        lines = _chunks(reader) if "transfer-encoding: chunked" in headers else _rest(reader)
        left, whole = "", ""
        async for piece in lines:
            whole += piece if status != 200 else ""
            *events, left = (left + piece).split("\n\n")
            for event in events:
                if event.startswith("data: {"):
                    said = json.loads(event[6:])
                    if "error" in said:
                        return status, said["error"]["message"]
                    if said["choices"][0]["text"]:
                        told(said["choices"][0]["text"])
        if whole.startswith('{"error"'):
            whole = json.loads(whole)["error"]["message"]
        return status, whole
    finally:
        writer.close()


async def _chunks(reader: asyncio.StreamReader) -> Any:
    """The body of an answer in chunks: a size in hexadecimal, so many bytes, an empty line; 0 at the end."""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        yield (await reader.readexactly(size)).decode()
        await reader.readexactly(2)


async def _rest(reader: asyncio.StreamReader) -> Any:
    yield (await reader.read()).decode()
