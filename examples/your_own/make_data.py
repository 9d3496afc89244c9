# make_data.py
import random

import pyarrow
import pyarrow.parquet

random.seed(1)
rows = []
for index in range(200):
    a, b = random.randrange(10), random.randrange(10)
    rows.append({"data_source": "mine/sums",
                 "prompt": [{"role": "user", "content": f"{a} + {b} = ?"}],
                 "ability": "math",
                 "reward_model": {"style": "rule", "ground_truth": str(a + b)},
                 "extra_info": {"index": index, "largest": max(a, b)}})
pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), "my-data.parquet")
