"""PaceCheckpoint: the sampler's state beside verl's checkpoint.

    trainer.checkpoint_callback_class=pace.verl.checkpoint.PaceCheckpoint

Writes `global_step_N/pace.json` after verl has written the rest. A resumed run reads it at its
first draw. The file appears complete or not at all.
"""

from __future__ import annotations

import json
import os

from verl.trainer.ppo.checkpoint_callback import CheckpointCallback


class PaceCheckpoint(CheckpointCallback):
    def on_save(self, trainer, global_step, checkpoint_dir, async_save=False, **kwargs):
        state = getattr(trainer.replay_buffer, "state", lambda: None)()
        if state is None:
            return
        path = os.path.join(checkpoint_dir, "pace.json")
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".tmp", path)
