"""The process that computes rewards for `task.verifier=python:FILE:FUNCTION`.

    python3 reward_worker.py SOCKET FILE FUNCTION BATCH

First it says whether it could load the function; then it answers batches until the socket closes.
It runs behind worker_base.py, in one script.
"""

# Seconds after which the responses of a message that are left are given back.
_TIME_SLICE = 0.05


def parameters_of(function):
    """The names that the function takes; None = all of them."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def arguments(items, names, batched):
    """Keyword arguments of a call; lists of them in a batch."""
    names = list(items[0]) if names is None else [name for name in names if name in items[0]]
    if batched:
        return {name: [item[name] for item in items] for name in names}
    return {name: items[0][name] for name in names}


def answer_each(function, items, names, path):
    """One call for each response, as many as fit into the time slice, but at least one."""
    results, end = [], time.monotonic() + _TIME_SLICE
    for item in items:
        if results and time.monotonic() > end:
            results.append({"later": True})
        else:
            results += answer(function, [item], names, False, path)
    return results


def answer(function, items, names, batched, path):
    try:
        os.chdir(_FOLDER)
        values = function(**arguments(items, names, batched))
        if not batched:
            return [result_of(values)]
        values = list(values)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        return [{"error": describe(error, path)}] * len(items)
    if len(values) != len(items):
        return [{"invalid": f"gave {len(values)} values for {len(items)} responses"}] * len(items)
    return [result_of(value) for value in values]


def main():
    connection = socket.socket(fileno=int(sys.argv[1]))
    path, name, batch = sys.argv[2], sys.argv[3], int(sys.argv[4])
    process = os.getpid()
    sys.argv = [path]
    try:
        function = load(path, name, "function")
        names = parameters_of(function)
    except BaseException as error:
        send(connection, {"ready": False, "error": f"{path}: {describe(error, path)}"})
        return
    send(connection, {"ready": True})
    while True:
        message = receive(connection)
        items = message["items"]
        for item in items:
            read_fields(item)
        if batch > 1:
            results = answer(function, items, names, True, path)
        else:
            results = answer_each(function, items, names, path)
        if os.getpid() != process:
            os._exit(0)  # a fork of the function's; its parent answers
        send(connection, {"batch": message["batch"], "results": results})


main()
