#!/usr/bin/env python3
"""Makes the golden files of this folder: inputs of our own, and what peers' packages compute
from them.

    .venv/bin/python tests/golden/make.py               # writes them here
    .venv/bin/python tests/golden/make.py --to FOLDER   # or somewhere else

Needs tokenizers, transformers, torch and safetensors; every file names the versions that made
it. What no package computes (tool calls, truncation, verifiers, admission) is written down a
second time in the modules beside this file, from the documents that they name.
"""

import argparse
import pathlib

HERE = pathlib.Path(__file__).resolve().parent


def make_all(folder):
    # Imported here, so that --help needs no packages.
    import make_admission
    import make_chat
    import make_numerics
    import make_safetensors
    import make_tokenizers
    import make_tools
    import make_verify

    make_tokenizers.write(folder, HERE.parents[1])
    make_chat.write(folder, HERE)
    make_tools.write(folder)
    make_verify.write(folder)
    make_admission.write(folder)
    make_numerics.write(folder)
    make_safetensors.write(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=pathlib.Path, default=HERE, metavar="FOLDER")
    make_all(parser.parse_args().to)


if __name__ == "__main__":
    main()
