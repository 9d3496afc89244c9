"""The process that asks a server for rewards, `task.verifier=http://HOST:PORT/PATH`.

    python3 http_worker.py SOCKET URL "TIMEOUT RETRIES" BATCH

First it says whether the server can be reached; then it sends batches until the socket closes. It
runs behind worker_base.py, in one script.

    POST URL  {"items": [{"id": ..., "response": ..., "answer": ..., ...}, ...]}
    200       {"results": [1.0, {"score": 0.5, "words": 12}, ...]}, or the list alone
"""

import urllib.error
import urllib.parse
import urllib.request

_FIRST_PAUSE, _MAX_PAUSE = 0.5, 30  # seconds between attempts, doubling
_MAX_ANSWER = 64 << 20


class NoProxy(urllib.request.ProxyHandler):
    def __init__(self):
        super().__init__({})


_opener = urllib.request.build_opener(NoProxy())


def reach(url):
    parts = urllib.parse.urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    socket.create_connection((parts.hostname, port), timeout=10).close()


def ask(url, items, deadline):
    """One attempt: as many results as items, or an exception."""
    request = urllib.request.Request(url, json.dumps({"items": items}).encode(),
                                     {"Content-Type": "application/json"})
    data = b""
    with _opener.open(request, timeout=max(0.01, deadline - time.monotonic())) as answer:
        while len(data) <= _MAX_ANSWER:
            part = answer.read1(1 << 16)
            if not part:
                break
            data += part
            # A server that sends a byte now and then is late, too.
            if time.monotonic() > deadline:
                raise TimeoutError("timed out")
    if len(data) > _MAX_ANSWER:
        raise ValueError(f"gave more than {_MAX_ANSWER} bytes")
    results = json.loads(data)
    if isinstance(results, dict):
        results = results.get("results")
    if not isinstance(results, list):
        raise ValueError("gave no list of results")
    if len(results) != len(items):
        raise ValueError(f"gave {len(results)} results for {len(items)} responses")
    return results


def why(error):
    reason = getattr(error, "reason", None)
    return str(reason if reason is not None and not isinstance(error, urllib.error.HTTPError)
               else error)[:_MAX_MESSAGE]


def answer(url, items, timeout, retries):
    pause = _FIRST_PAUSE
    for attempt in range(retries + 1):
        try:
            return [result_of(value) for value in ask(url, items, time.monotonic() + timeout)]
        except Exception as error:
            # What the server refuses as wrong it will refuse again.
            refused = isinstance(error, urllib.error.HTTPError) and 400 <= error.code < 500 \
                and error.code not in (408, 429)
            if refused or attempt == retries:
                kind = "invalid" if isinstance(error, ValueError) else "error"
                return [{kind: f"{url}: {why(error)}"}] * len(items)
        time.sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE)
    return []


def main():
    connection = socket.socket(fileno=int(sys.argv[1]))
    url, limits = sys.argv[2], sys.argv[3].split()
    timeout, retries = float(limits[0]), int(limits[1])
    try:
        reach(url)
    except Exception as error:
        send(connection, {"ready": False, "error": f"{url}: cannot be reached: {error}"})
        return
    send(connection, {"ready": True})
    while True:
        message = receive(connection)
        for item in message["items"]:
            read_fields(item)
        results = answer(url, message["items"], timeout, retries)
        send(connection, {"batch": message["batch"], "results": results})


main()
