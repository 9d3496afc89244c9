"""The peer of `pace bench tokenizer`: the `tokenizers` package on one thread.

Arguments: tokenizer.json and a file of texts, one JSON string per line. Each
line of input is answered: "version" by the package's version, any other by the
seconds that one pass over all texts took and the number of ids.
"""

import json
import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import tokenizers  # noqa: E402  (reads the two variables)


def main():
    tokenizer = tokenizers.Tokenizer.from_file(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as file:
        texts = [json.loads(line) for line in file]
    for line in sys.stdin:
        if line.strip() == "version":
            print(json.dumps({"version": f"tokenizers {tokenizers.__version__}"}), flush=True)
            continue
        start = time.perf_counter()
        num_ids = sum(len(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts)
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "num_ids": num_ids}), flush=True)


main()
