"""What a response keeps of its generation attempts.

verl's engines answer a request once per attempt: a weight sync aborts it, and the client submits
prompt plus tokens again. verl concatenates the tokens and forgets the boundaries. `Attempts` keeps
them: which version sampled how many tokens, and the prefix score of the last interruption.

    attempts = Attempts(min_tokens=32, max_tokens=1024)
    attempts.begin_turn(prompt_ids)
    if attempts.wants_score: ...            # ask for prompt_logprobs
    attempts.add(version, token_ids, log_probs, prompt_logprobs, aborted)

A multi-turn response calls `begin_turn` once per turn with the whole context so far. Tool tokens
are part of later contexts and never counted.

`tag()` is what goes into TransferQueue, in types of JSON.
"""

from __future__ import annotations

from collections.abc import Sequence


class Attempts:
    """The attempts of one response.

    >>> from pace.verl.attempts import Attempts
    >>> attempts = Attempts(min_tokens=2, max_tokens=4)
    >>> attempts.begin_turn([7, 7])
    >>> attempts.add(3, [10, 11], [-0.5, -0.25], aborted=True)
    >>> attempts.wants_score
    True
    >>> attempts.add(4, [12], [-1.0], prompt_logprobs=[-9.0, -0.5, -0.75, 0.0])
    >>> attempts.tag()
    {'segments': [[3, 2], [4, 1]], 'completed': 4, 'prefix_score': 0.25, 'num_aborted': 1}
    """

    def __init__(self, min_tokens: int = 32, max_tokens: int = 1024, scores: bool = True):
        self.min_tokens = min_tokens
        self.max_tokens = max_tokens
        self.scores = scores
        self.segments: list[list[int]] = []
        self.completed: int | None = None
        self.prefix_score: float | None = None
        self.num_aborted = 0
        self._num_tokens = 0
        self._context: list[int] = []
        # Policy tokens that may be scored: position in the context, token, log-probability.
        self._sampled: list[tuple[int, int, float]] = []
        self._interrupted = False

    def begin_turn(self, prompt_ids: Sequence[int]) -> None:
        """The context that the next attempt continues."""
        self._context = list(prompt_ids)
        self._interrupted = False
        # A template may have rewritten earlier turns; tokens that moved cannot be scored.
        self._sampled = [(at, token, log_prob) for at, token, log_prob in self._sampled
                         if at < len(self._context) and self._context[at] == token]

    @property
    def context(self) -> list[int]:
        """Prompt and tokens so far: what the next attempt is given."""
        return self._context

    @property
    def wants_score(self) -> bool:
        """Whether the next attempt continues an interrupted response long enough to be scored."""
        return (self.scores and self._interrupted and self._num_tokens >= self.min_tokens
                and bool(self._sampled))

    def add(self, version: int | None, token_ids: Sequence[int], log_probs: Sequence[float] | None,
            prompt_logprobs: Sequence | None = None, aborted: bool = False) -> None:
        """One answer. Entry i of `prompt_logprobs` scores token i + 1 of the context, as verl's
        servers give it: a number or a list that begins with it."""
        if prompt_logprobs is not None and self.wants_score:
            self._score(prompt_logprobs)
        if version is not None:
            self.completed = version
        if token_ids:
            self._append(version, token_ids, log_probs)
        self._interrupted = aborted
        self.num_aborted += aborted

    def _append(self, version, token_ids, log_probs) -> None:
        at = len(self._context)
        room = self.max_tokens - len(self._sampled)
        if room > 0 and log_probs is not None and len(log_probs) == len(token_ids):
            self._sampled.extend(
                (at + i, token, log_prob)
                for i, (token, log_prob) in enumerate(zip(token_ids[:room], log_probs)))
        self._context.extend(token_ids)
        self._num_tokens += len(token_ids)
        version = -1 if version is None else version
        if self.segments and self.segments[-1][0] == version:
            self.segments[-1][1] += len(token_ids)
        else:
            self.segments.append([version, len(token_ids)])

    def _score(self, prompt_logprobs) -> None:
        total, count = 0.0, 0
        for at, _, log_prob in self._sampled:
            if at == 0 or at > len(prompt_logprobs):
                continue
            entry = prompt_logprobs[at - 1]
            total += abs((entry[0] if isinstance(entry, (list, tuple)) else entry) - log_prob)
            count += 1
        if count > 0:
            self.prefix_score = total / count

    def tag(self) -> dict:
        return {"segments": self.segments, "completed": self.completed,
                "prefix_score": self.prefix_score, "num_aborted": self.num_aborted}
