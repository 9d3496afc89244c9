"""Updates that take the time of an accelerator, for verl's `actor_rollout_ref.model.external_lib`.

Where the same cores train and generate, each slows the other down. Here an update takes
PACE_UPDATE_SECONDS, and for the rest of that time the cores are free, as while a GPU computes it.
"""

import functools
import os
import time

from verl.workers import engine_workers

_SECONDS = float(os.environ["PACE_UPDATE_SECONDS"])
_train = engine_workers.TrainingWorker.train_mini_batch


@functools.wraps(_train)
def train_mini_batch(*args, **kwargs):
    begun = time.monotonic()
    output = _train(*args, **kwargs)
    time.sleep(max(0.0, begun + _SECONDS - time.monotonic()))
    return output


engine_workers.TrainingWorker.train_mini_batch = train_mini_batch
