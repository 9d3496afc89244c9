# Everything goes through here; `make help` lists it. Each target is complete:
# it installs what is missing (scripts/setup), builds and runs.

# Compilers and tests at a time.
PACE_JOBS ?= $(shell nproc)
# Seconds for each fuzz target, and its seed (0: another each time).
PACE_FUZZ_SECONDS ?= 10
PACE_FUZZ_SEED ?= 1
# Which builds `make test` tests; a subset is for quick rounds.
STAGES ?= release asan tsan cross
# Where `make install` installs the libraries.
PREFIX ?= /usr/local
# The interpreter that the wheel is for.
PYTHON ?= python3
export PACE_JOBS PACE_FUZZ_SECONDS PACE_FUZZ_SEED PYTHON

.PHONY: help demo build install wheel test test-cross test-peers test-python experiments fuzz check lint format clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo     build pace and run the demonstration; ends with the path of its report'
	@echo 'make build    build build/pace'
	@echo 'make install  install the controller and the simulator as C++ libraries, for find_package(pace)'
	@echo '              (PREFIX=$(PREFIX)); needs no LibTorch'
	@echo 'make wheel    the Python package as a wheel, in dist/ (PYTHON=$(PYTHON)); needs no LibTorch'
	@echo 'make test-python  build the wheel, install it into a fresh environment, run its tests'
	@echo 'make test     all tests, then the torch-free ones under sanitizers, then short fuzzing,'
	@echo '              then those that promise bits for the other processor, emulated'
	@echo '              (STAGES="$(STAGES)" PACE_FUZZ_SECONDS=$(PACE_FUZZ_SECONDS) PACE_JOBS=$(PACE_JOBS))'
	@echo 'make test-cross  all torch-free tests for the other processor (x86_64 or aarch64), emulated'
	@echo 'make test-peers  runs on vLLM servers and inside verl (installs them into .venv-vllm, .venv-verl; minutes)'
	@echo 'make experiments  every experiment that needs no GPU again, held against results/ (hours)'
	@echo 'make fuzz     every fuzz target with a new seed (PACE_FUZZ_SECONDS=$(PACE_FUZZ_SECONDS) each)'
	@echo 'make check    format, structure, thread-safety analysis, lint of the files that changed'
	@echo 'make lint     the same, with lint of every file (hours on two cores)'
	@echo 'make format   rewrite the sources in the one format'
	@echo 'make clean    remove every build folder (runs/ stays)'

demo: build
	@scripts/demo

build:
	@scripts/setup build
	@cmake --preset release > /dev/null
	@cmake --build build --target pace -j $(PACE_JOBS)

install:
	@scripts/setup library
	@cmake --preset library > /dev/null
	@cmake --build build-library -j $(PACE_JOBS)
	@cmake --install build-library --prefix $(PREFIX) > /dev/null
	@echo 'pace::controller and pace::sim are in $(PREFIX)'

wheel:
	@scripts/setup library
	@scripts/make_wheel

test-python:
	@scripts/setup build
	@cmake --preset release > /dev/null
	@cmake --build build --target pace -j $(PACE_JOBS)
	@scripts/make_wheel --test

test:
	@scripts/setup test
	@scripts/run_tests $(STAGES)

test-cross:
	@scripts/setup cross
	@PACE_WHOLE_STAGES=1 scripts/run_tests cross

test-peers:
	@scripts/setup peers
	@scripts/run_tests peers

experiments: build
	@scripts/run_experiments

fuzz:
	@scripts/setup test
	@PACE_FUZZ_SEED=0 scripts/run_tests fuzz

check:
	@scripts/setup check
	@scripts/run_checks

lint:
	@scripts/setup check
	@scripts/run_checks --all

format:
	@scripts/setup check
	@find src tests -regex '.*\.\(cc\|h\|cu\|cuh\)' -print0 | xargs -0 clang-format-19 -i

clean:
	rm -rf build build-asan build-core build-cross build-cuda build-dev build-library build-python build-tsan dist .deps
