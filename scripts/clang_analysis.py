"""Clang's analyses without a build: thread safety, and lint by clang-tidy.

    clang_analysis.py threads               files with tensors that hold mutexes
    clang_analysis.py lint [--all] [--base REVISION]

Needs build-dev/compile_commands.json (cmake --preset dev). Precompiled headers are taken out
of the commands, since files include what they use. The torch-free part is analysed for thread
safety by every sanitizer build, so `threads` looks at the rest.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build-dev"
MUTEX_HEADER = "core/mutex.h"
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def without_precompiled(words):
    """The command without -Xclang -include-pch -Xclang FILE and -Xclang -include -Xclang FILE."""
    kept, i = [], 0
    while i < len(words):
        if words[i] == "-Xclang" and words[i + 1] in ("-include-pch", "-include"):
            i += 4
        else:
            kept.append(words[i])
            i += 1
    return kept


def commands():
    """Of each source file, as a path from the root: its folder and its words."""
    found = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        while "clang++" not in words[0]:
            words.pop(0)
        path = os.path.relpath(entry["file"], ROOT)
        found[path] = (entry["directory"], without_precompiled(words))
    return found


def reaches(path, header, seen):
    """Whether a file includes the header, directly or not."""
    if path in seen:
        return seen[path]
    seen[path] = False
    text = (ROOT / "src" / path).read_text(encoding="utf-8")
    names = [name for name in _INCLUDE.findall(text) if (ROOT / "src" / name).exists()]
    seen[path] = header in names or any([reaches(name, header, seen) for name in names])
    return seen[path]


def analyse(command):
    """Thread safety alone: builds check the other warnings, and headers of libstdc++ raise some."""
    folder, words = command
    done = subprocess.run([*words, "-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror"],
                          cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stderr


def check_threads(jobs):
    seen = {}
    chosen = [command for path, command in commands().items()
              if path.startswith("src/") and not path.endswith("_test.cc")
              and any("torch" in word for word in command[1])
              and reaches(path.removeprefix("src/"), MUTEX_HEADER, seen)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(analyse, chosen))
    for code, text in results:
        if code:
            print(text)
    print(f"thread safety: {len(results)} files analysed")
    return 1 if any(code for code, _ in results) or not results else 0


def changed_since(base):
    listed = subprocess.run(["git", "diff", "--name-only", "--diff-filter=d", base], cwd=ROOT,
                            capture_output=True, text=True, check=True)
    return {line for line in listed.stdout.splitlines() if line.endswith(".cc")}


def default_base():
    for base in (os.environ.get("PACE_LINT_BASE"), "origin/main", "HEAD~1"):
        if base and subprocess.run(["git", "rev-parse", "-q", "--verify", base], cwd=ROOT,
                                   capture_output=True).returncode == 0:
            return base
    return None


def lint(jobs, files):
    cleaned = BUILD / "lint"
    cleaned.mkdir(exist_ok=True)
    known = commands()
    files = sorted(path for path in known if path.startswith("src/") and path in files)
    entries = [{"directory": folder, "file": str(ROOT / path), "arguments": words}
               for path, (folder, words) in known.items()]
    (cleaned / "compile_commands.json").write_text(json.dumps(entries))

    def tidy(path):
        done = subprocess.run(["clang-tidy-19", "-p", str(cleaned), "--quiet", path], cwd=ROOT,
                              capture_output=True, text=True)
        return done.returncode, done.stdout

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(tidy, files))
    for code, text in results:
        if code:
            print(text)
    print(f"lint: {len(files)} files")
    return 1 if any(code for code, _ in results) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["threads", "lint"])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--base", default=default_base())
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    if arguments.what == "threads":
        return check_threads(arguments.jobs)
    if not arguments.all and arguments.base is None:
        print("lint: no revision to compare with: 0 files (--all lints every file)")
        return 0
    files = set(commands()) if arguments.all else changed_since(arguments.base)
    return lint(arguments.jobs, files)


if __name__ == "__main__":
    sys.exit(main())
