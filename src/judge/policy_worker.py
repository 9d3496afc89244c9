"""The process that is the admission policy of `admission.policy=python:FILE:CLASS`.

    python3 policy_worker.py SOCKET FILE CLASS

First it says whether it could make the policy, and which methods it has; then it answers one call
at a time until the socket closes. It runs behind worker_base.py, in one script.
"""

import types

_MAX_STATE = 1 << 20
_OPTIONAL = ("begin_step", "score", "observe")


class Invalid(Exception):
    """What a policy gave is no answer."""


class Group:
    """A finished group, with the attributes of pace.Group."""

    def __init__(self, fields):
        self.__dict__.update(fields)

    def waiting(self, step):
        return (step * self.num_members - self._completed_sum) / self.num_members

    def lag(self, step):
        return self.generation + self.waiting(step)

    def max_token_lag(self, step):
        return step - self.oldest


class Decision:
    """A verdict, with the attributes of pace.Decision."""

    def __init__(self, admit, score=0.0, reason=None):
        self.admitted = bool(admit)
        self.score = score
        self.reason = reason or ("within_bound" if admit else "over_bound")
        self.weight, self.percentile = 1.0, None

    verdict = property(lambda self: "admit" if self.admitted else "reject")

    def __bool__(self):
        return self.admitted


def provide_pace():
    """Files that import pace find at least Decision in it, installed or not."""
    try:
        import pace

        pace.Decision
    except Exception:
        def missing(name):
            raise AttributeError(f"pace.{name}: the package pace is not installed for {sys.executable}")

        sys.modules["pace"] = types.ModuleType("pace")
        sys.modules["pace"].Decision = Decision
        sys.modules["pace"].__getattr__ = missing


def number(value, what):
    try:
        found = float(None if isinstance(value, (str, bytes, bytearray)) else value)
    except (TypeError, ValueError, OverflowError):
        raise Invalid(f"gave {type(value).__name__} as {what} instead of a number") from None
    if not math.isfinite(found):
        raise Invalid(f"gave {found} as {what}")
    return found


def check_kept(value, name):
    """Whether JSON gives the value back as it is."""
    kind = type(value)
    if kind is dict and all(type(key) is str for key in value):
        for key, item in value.items():
            check_kept(item, f"{name}[{key!r}]")
    elif kind is list:
        for item in value:
            check_kept(item, f"{name}[]")
    elif value is not None and kind not in (bool, int, float, str):
        raise Invalid(f"{name} is a {kind.__name__}, which a checkpoint does not hold (give the "
                      "class state() and restore(state))")


class Policy:
    def __init__(self, policy_class):
        self.policy = policy_class()
        if not callable(getattr(self.policy, "judge", None)):
            raise AttributeError(f"{policy_class.__name__} has no method judge")
        if getattr(self.policy, "needs_members", False):
            raise AttributeError("needs_members: a run shows its policy whole groups only")
        self.has_state = hasattr(self.policy, "state")
        if self.has_state != hasattr(self.policy, "restore"):
            raise AttributeError("state and restore: one of them is missing")

    def methods(self):
        return " ".join(name for name in _OPTIONAL if callable(getattr(self.policy, name, None)))

    def begin_step(self, message):
        self.policy.begin_step(message["step"], message["occupancy"], message["batch"],
                               message["served"])
        return {}

    def score(self, message):
        return {"score": number(self.policy.score(Group(message["group"])), "score")}

    def judge(self, message):
        group = Group(message["group"])
        verdict = self.policy.judge(group)
        if hasattr(verdict, "admitted"):
            reply = {"admit": bool(verdict.admitted), "score": number(verdict.score, "score"),
                     "reason": str(verdict.reason), "weight": number(verdict.weight, "weight")}
            if verdict.percentile is not None:
                reply["percentile"] = number(verdict.percentile, "percentile")
            return reply
        if type(verdict).__name__ not in ("bool", "bool_"):
            raise Invalid(f"gave {type(verdict).__name__} instead of True, False or a Decision")
        score = self.policy.score(group) if hasattr(self.policy, "score") \
            else group.lag(message["step"])
        return {"admit": bool(verdict), "score": number(score, "score")}

    def observe(self, message):
        decision = Decision(False)
        decision.__dict__.update(message["decision"])
        self.policy.observe(Group(message["group"]), decision)
        return {}

    def state(self, message):
        if self.has_state:
            kept = self.policy.state()
            check_kept(kept, "state()")
        else:
            kept = getattr(self.policy, "__dict__", {})
            for name, value in kept.items():
                check_kept(value, name)
        try:
            text = json.dumps(kept, allow_nan=False)
        except ValueError as error:
            raise Invalid(f"gave a state that is no JSON: {error}") from None
        if len(text) > _MAX_STATE:
            raise Invalid(f"has a state of {len(text)} bytes; at most {_MAX_STATE} are saved")
        return {"state": text}

    def restore(self, message):
        kept = json.loads(message["state"])
        if self.has_state:
            self.policy.restore(kept)
        else:
            self.policy.__dict__.clear()
            self.policy.__dict__.update(kept)
        return {}


def answer(policy, message, path):
    try:
        os.chdir(_FOLDER)
        return getattr(policy, message["call"])(message)
    except (SystemExit, KeyboardInterrupt):
        raise
    except Invalid as error:
        return {"invalid": str(error)}
    except BaseException as error:
        return {"error": describe(error, path)}


def main():
    connection = socket.socket(fileno=int(sys.argv[1]))
    path, name = sys.argv[2], sys.argv[3]
    process = os.getpid()
    sys.argv = [path]
    try:
        provide_pace()
        policy = Policy(load(path, name, "class"))
    except BaseException as error:
        send(connection, {"ready": False, "error": describe(error, path)})
        return
    send(connection, {"ready": True, "offers": policy.methods()})
    while True:
        reply = answer(policy, receive(connection), path)
        if os.getpid() != process:
            os._exit(0)  # a fork of the policy's; its parent answers
        send(connection, reply)


main()
