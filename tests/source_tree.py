"""The repository as the tests of its structure see it."""

import os
import pathlib
import re
import subprocess

# Outside git (an unpacked archive) these are what a build or a run leaves.
_MADE = re.compile(r"^(build.*|runs|\.git|\.venv.*|\.deps|\.cache|__pycache__)$")


def root():
    """The checkout: ctest names it, a run by hand stands in it."""
    return pathlib.Path(
        os.environ.get("PACE_SOURCE_DIR") or pathlib.Path(__file__).resolve().parent.parent)


def files(tree):
    """Every file that is, or would be, committed; sorted, relative to tree."""
    tree = pathlib.Path(tree)
    if (tree / ".git").exists():
        # A checkout of another user's is fine to read, whatever git thinks.
        listing = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "-z"],
            cwd=tree, capture_output=True, check=False)
        if listing.returncode == 0:
            names = set(listing.stdout.decode().split("\0")) - {""}
            return sorted(pathlib.Path(name) for name in names if (tree / name).is_file())
    found = []
    for folder, subfolders, names in os.walk(tree):
        subfolders[:] = [name for name in subfolders if not _MADE.match(name)]
        found += [(pathlib.Path(folder) / name).relative_to(tree) for name in names]
    return sorted(found)


def write(tree, path, text=""):
    """Creates a file of a made-up tree, folders included."""
    target = pathlib.Path(tree) / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def cmake_calls(text, function):
    """The arguments of each call of a CMake function, as lists of words."""
    bare = re.sub(r"#.*", "", text)
    return [call.split() for call in re.findall(rf"\b{function}\s*\(([^)]*)\)", bare)]
