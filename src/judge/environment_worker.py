"""The process that holds environments for `tools.use=python:FILE:CLASS`.

    python3 environment_worker.py SOCKET FILE CLASS

First it says whether it could load the class, and the schemas of its tools; then it takes one turn
of a response at a time until the socket closes. A turn comes with the turns before it, so that an
environment that this process does not hold is made again: from its last state, or by replaying the
turns. It runs behind worker_base.py, in one script.
"""

# Environments that a process holds; the one used longest ago makes room.
_MAX_ENVIRONMENTS = 1024
_MAX_STATE = 1 << 18
_MAX_OBSERVATION = 1 << 20
_held = {}  # by response: an environment, and the turns it has taken


class Invalid(Exception):
    """What an environment gave is no step."""


def close(environment):
    if hasattr(environment, "close"):
        try:
            environment.close()
        except Exception:
            pass


def take(environment, turn):
    """(observation, reward, done) or (observation, reward, done, info), checked."""
    given = environment.step(turn)
    if not isinstance(given, tuple) or len(given) not in (3, 4):
        raise Invalid("gave no (observation, reward, done)")
    observation, reward, done = given[:3]
    info = dict(given[3]) if len(given) == 4 and given[3] is not None else {}
    reply = {"done": bool(done)}
    if isinstance(observation, str):
        reply["observation"] = observation[:_MAX_OBSERVATION]
    elif isinstance(observation, (list, tuple)):
        for message in observation:
            texts = isinstance(message, dict) and set(message) == {"role", "content"}
            if not texts or not all(isinstance(text, str) for text in message.values()):
                raise Invalid("gave a message that is not {'role': ..., 'content': ...}")
        reply["messages"] = list(observation)
    elif observation is not None:
        raise Invalid(f"gave {type(observation).__name__} as observation")
    missing = observation is None or observation == []
    if missing and not done and not turn["last"]:
        raise Invalid("gave no observation for a response that goes on")
    if reward is not None:
        score = result_of(reward)
        if "score" not in score:
            raise Invalid(score["invalid"].replace("or a dictionary", "or None"))
        reply["reward"] = score["score"]
    for name in ("correct", "failed"):
        if name in info:
            reply[name] = bool(info.pop(name))
    if info:
        detail = result_of({"score": 0, **info})
        if "invalid" in detail:
            raise Invalid(detail["invalid"])
        reply["detail"] = detail.get("detail", "")
    if hasattr(environment, "state"):
        state = json.dumps(environment.state(), allow_nan=False)
        if len(state) > _MAX_STATE:
            raise Invalid(f"gave a state of {len(state)} bytes; at most {_MAX_STATE} are saved")
        reply["state"] = state
    return reply


def make(environment_class, message):
    """The environment as it was before the last turn of the message."""
    environment, turns, taken = environment_class(), message["turns"], 0
    problem = message["problem"]
    if message["state"] and hasattr(environment, "restore"):
        environment.restore(problem, json.loads(message["state"]))
        taken = message["num_restored"]
    else:
        environment.reset(problem)
    for turn in turns[taken:-1]:
        environment.step(turn)
    return environment


def step(environment_class, message, path):
    key, turns = message["key"], message["turns"]
    environment, taken = _held.pop(key, (None, -1))
    os.chdir(_FOLDER)
    try:
        if taken != len(turns) - 1:
            environment = make(environment_class, message)
        reply = take(environment, turns[-1])
    except (SystemExit, KeyboardInterrupt):
        raise
    except Invalid as error:
        reply = {"invalid": str(error)}
    except BaseException as error:
        reply = {"error": describe(error, path)}
    goes_on = "done" in reply and not reply["done"] and not turns[-1]["last"]
    if goes_on:
        _held[key] = (environment, len(turns))
        if len(_held) > _MAX_ENVIRONMENTS:
            close(_held.pop(next(iter(_held)))[0])
    elif environment is not None:
        close(environment)
    return reply


def main():
    connection = socket.socket(fileno=int(sys.argv[1]))
    path, name = sys.argv[2], sys.argv[3]
    process = os.getpid()
    sys.argv = [path]
    try:
        environment_class = load(path, name, "class")
        for method in ("reset", "step"):
            if not callable(getattr(environment_class, method, None)):
                raise AttributeError(f"{name} has no method {method}")
        tools = json.dumps(list(getattr(environment_class, "tools", [])), allow_nan=False)
    except BaseException as error:
        send(connection, {"ready": False, "error": f"{path}: {describe(error, path)}"})
        return
    send(connection, {"ready": True, "offers": tools})
    while True:
        message = receive(connection)
        read_fields(message["problem"])
        reply = step(environment_class, message, path)
        if os.getpid() != process:
            os._exit(0)  # a fork of the environment's; its parent answers
        send(connection, reply)


main()
