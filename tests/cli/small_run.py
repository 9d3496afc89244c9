"""Settings of runs so small that a test can make several, for the tests beside this file."""

# A network of random weights that learns from the length penalty alone: enough
# to see every part move, in a second.
SMALL = ["batch.num_groups=3", "batch.group_size=4", "supply.threshold=3",
         "task.max_numbers=4", "generation.max_tokens=12", "prefix.min_tokens=2",
         "admission.min_observations=4", "cluster.slots=24", "cluster.train_seconds=0.05",
         "engine.slots=24", "engine.kv_mib=4", "train.learning_rate=1e-2",
         "train.overlong_buffer=8", "task.held_out_problems=8", "evaluation.num_responses=2",
         "run.evaluate_every=0"]
SHAPE = ["model.num_layers=2", "model.hidden=16", "model.num_heads=2", "model.num_kv_heads=1",
         "model.head_dim=8", "model.ffn=24"]
# The model inside pace on a small batch. Calls take long against a step, so that
# checkpoints and syncs find many of them under way.
RETOOL = ["batch.num_groups=4", "batch.group_size=4", "supply.threshold=3",
          "admission.min_observations=4", "cluster.slots=32", "engine.slots=32",
          "engine.kv_mib=16", "cluster.train_seconds=0.2", "workload.tool_latency_s=0.3",
          "workload.tool_concurrency=4", "task.max_numbers=3", "generation.max_tokens=200",
          "task.held_out_problems=12", "evaluation.num_responses=2", "run.evaluate_every=0",
          "record.level=full"]
