"""verl's way of continuing responses after a weight sync, for `pace bench serve`.

    PYTHON verl_peer.py

One JSON request per line, one JSON answer per line:

  {"url": ..., "responses": 32, "tokens": 200, "folder": ..., "label": ..., "wait": 0.2}
      {"seconds": of it all, "version": "verl ..."}

The client is verl's own FullyAsyncLLMServerClient, unmodified. What it reaches through Ray in verl,
a load balancer and a server, are objects of this process here, which saves it those calls; the
server passes requests on to the URL. The sync is verl's, too: abort, load, resume.
"""

import asyncio
import importlib.metadata
import json
import os
import sys
import time

os.environ.setdefault("RAY_DEDUP_LOGS", "0")

PROMPT = [6, 13, 7, 16]


def start():
    from verl.workers.rollout.llm_server import FullyAsyncLLMServerClient
    from verl.workers.rollout.replica import TokenOutput

    return FullyAsyncLLMServerClient, TokenOutput


class Remote:
    """A method as Ray would have it: `.remote(...)` gives something to await."""

    def __init__(self, method):
        self._method = method

    def remote(self, *args, **kwargs):
        return asyncio.ensure_future(self._method(*args, **kwargs))


class Balancer:
    """One server, always the same."""

    def __init__(self, server):
        self._server = server
        self.require_acquire_fields = Remote(self._no_fields)
        self.require_release_fields = Remote(self._no_fields)
        self.acquire_server = Remote(self._acquire)
        self.release_server = Remote(self._release)

    async def _no_fields(self):
        return []

    async def _acquire(self, request_id):
        return "server", self._server

    async def _release(self, server_id):
        pass


class Namespace:
    """A config with attributes."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


class Server:
    """Passes requests on, over connections that are used again."""

    def __init__(self, url, output):
        self._host, port = url.removeprefix("http://").split(":")
        self._port = int(port)
        self._output = output
        self._free = []
        self.generate = Remote(self._generate)

    async def call(self, path, body=None):
        if self._free:
            reader, writer = self._free.pop()
        else:
            reader, writer = await asyncio.open_connection(self._host, self._port)
        data = b"" if body is None else json.dumps(body).encode()
        writer.write((f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\n"
                      f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
                      ).encode() + data)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        if " 200" not in lines.split("\r\n", 1)[0]:
            raise RuntimeError(f"{path} was answered {lines.splitlines()[0]}")
        length = int(lines.split("content-length:")[1].split("\r\n")[0])
        text = await reader.readexactly(length)
        self._free.append((reader, writer))
        return json.loads(text) if text else None

    async def _generate(self, request_id, prompt_ids, sampling_params, **_):
        answer = await self.call("/inference/v1/generate", {
            "request_id": request_id, "token_ids": prompt_ids,
            "sampling_params": {**sampling_params, "logprobs": 0, "ignore_eos": True,
                                "detokenize": False}})
        choice = answer["choices"][0]
        reason = choice["finish_reason"]
        return self._output(
            token_ids=choice["token_ids"],
            log_probs=[entry["logprob"] for entry in choice["logprobs"]["content"]],
            stop_reason="aborted" if reason == "abort" else reason, num_preempted=0,
            extra_fields={"global_steps": 0})

    def close(self):
        for _, writer in self._free:
            writer.close()


async def measure(request, client_class, output):
    server = Server(request["url"], output)
    config = Namespace(actor_rollout_ref=Namespace(rollout=Namespace(
        name="vllm", full_determinism=False, response_length=request["tokens"])))
    client = client_class(config, load_balancer_handle=Balancer(server))
    begun = time.perf_counter()
    responses = [asyncio.ensure_future(client.generate(
        str(index), prompt_ids=PROMPT,
        sampling_params={"max_tokens": request["tokens"], "temperature": 1.0}))
        for index in range(request["responses"])]
    await asyncio.sleep(request["wait"])
    await server.call("/pause?mode=abort&clear_cache=true")
    await server.call("/collective_rpc", {"method": "reload_weights",
                                          "kwargs": {"weights_path": request["folder"]}})
    await server.call("/update_weight_version", {"new_version": request["label"]})
    await server.call("/resume")
    outputs = await asyncio.gather(*responses)
    server.close()
    if any(len(output.token_ids) != request["tokens"] for output in outputs):
        raise RuntimeError("a response has another length than asked for")
    return {"seconds": time.perf_counter() - begun,
            "version": "verl " + importlib.metadata.version("verl")}


def main():
    # Whatever packages print is no answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    client_class, output = start()
    for line in sys.stdin:
        answer = asyncio.run(measure(json.loads(line), client_class, output))
        print(json.dumps(answer), file=answers, flush=True)


main()
