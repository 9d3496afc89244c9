#!/bin/sh -e
# docs/your-own.md, in this folder; `pace` must be in PATH.
python3 make_model.py
python3 make_data.py
pace data show my.yaml -n 2
pace train my.yaml --out runs/mine
pace export --model runs/mine/checkpoints/step-000008 --to my-trained-model
python3 use_model.py
