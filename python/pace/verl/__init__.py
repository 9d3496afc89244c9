"""PACE inside verl 0.9.1, by configuration alone.

Pure parts, which need neither verl nor Ray:

- `options`: what `trainer.v1.sampler.sampler_kwargs` says, checked;
- `attempts`: what a response keeps of its generation attempts: segments and prefix score;
- `admission`: which finished groups a step trains on, with record and state;
- `supply`: how many prompts the engines get (`method: jit`);
- `check`, `simulation`: the commands of `python -m pace.verl`.

Parts that verl loads by name:

- `sampler.PaceSampler`: `trainer.v1.sampler.custom_sampler`;
- `agent_loop.PaceAgentLoops`: `actor_rollout_ref.rollout.agent.agent_loop_manager_class`;
- `checkpoint.PaceCheckpoint`: `trainer.checkpoint_callback_class`;
- `replica`, `weight_files`, `cpu_platform`: replicas of `pace serve`, weights as files, and a CPU
  platform, loaded with `VERL_USE_EXTERNAL_MODULES=pace.verl.plugin`.

docs/integrations.md is the guide.
"""
