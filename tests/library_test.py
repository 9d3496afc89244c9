"""The installed package serves a project of its own.

The libraries of this build are installed into a temporary prefix; examples/own_trainer finds
them there, compiles, runs, and its decisions are checked. docs/library.md and the headers agree
about what is stable.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import source_tree

_BUILD = pathlib.Path(os.environ.get("PACE_BINARY_DIR", source_tree.root() / "build"))
_STABLE = "Stable: docs/library.md."
_MAX_LINES = 150  # of the example


def run(*command, cwd=None):
    return subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True,
                          check=False)


def configure(source, build, prefix):
    return run("cmake", "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
               f"-DCMAKE_PREFIX_PATH={prefix}")


def problems_of_output(text, num_steps):
    """What is wrong with the decisions that the example prints."""
    problems = []
    steps = [int(step) for step in re.findall(r"^step (\d+):", text, re.MULTILINE)]
    if steps != list(range(num_steps)):
        problems.append(f"steps {steps}")
    verdicts = re.findall(r"^  group \d+: (admit|reject) \(\w+\), staleness ", text, re.MULTILINE)
    if verdicts.count("admit") != 4 * num_steps:
        problems.append(f"{verdicts.count('admit')} groups admitted")
    if "reject" not in verdicts:
        problems.append("no group rejected")
    if not re.search(rf"^stopped at version {num_steps}; ", text, re.MULTILINE):
        problems.append("the run did not stop")
    return problems


def problems_of_stable_headers(page, headers):
    """Headers that the page calls stable and that say so themselves must be the same."""
    listed = re.findall(r"^\| `([\w/]+\.h)` \|", page, re.MULTILINE)
    stating = [name for name, text in headers.items() if _STABLE in text.split("#ifndef")[0]]
    return ([f"{name}: listed, but its first comment does not say `{_STABLE}`"
             for name in listed if name not in stating] +
            [f"{name}: says that it is stable, but docs/library.md does not list it"
             for name in stating if name not in listed])


def outside_paths(prefix, tree, build):
    """Files of the package that name the checkout or the build: it could not be moved."""
    return [path.name for path in sorted(prefix.rglob("*.cmake"))
            if str(tree) in path.read_text() or str(build) in path.read_text()]


@unittest.skipUnless("PACE_BINARY_DIR" in os.environ, "needs a build: ctest runs it")
class LibraryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = pathlib.Path(scratch.name)
        cls.prefix = cls.scratch / "prefix"
        done = run("cmake", "--install", _BUILD, "--prefix", cls.prefix)
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr)

    def test_a_project_outside_the_tree_builds_against_it_and_runs(self):
        build = self.scratch / "build"
        for done in (configure(source_tree.root() / "examples/own_trainer", build, self.prefix),
                     run("cmake", "--build", build)):
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = run(build / "own_trainer")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(problems_of_output(done.stdout, 12), [], done.stdout)

    def test_the_example_is_short(self):
        folder = source_tree.root() / "examples/own_trainer"
        num_lines = sum(len(path.read_text().splitlines()) for path in folder.iterdir())
        self.assertLess(num_lines, _MAX_LINES)

    def test_the_package_can_be_moved_and_has_no_header_of_tests(self):
        self.assertEqual(outside_paths(self.prefix, source_tree.root(), _BUILD), [])
        headers = [path.name for path in (self.prefix / "include/pace").rglob("*.h")]
        self.assertIn("coordinator.h", headers)
        self.assertEqual([name for name in headers
                          if name.startswith(("test_", "naive_", "chaos_"))], [])

    def test_another_minor_version_is_refused(self):
        source_tree.write(self.scratch, "newer/CMakeLists.txt",
                          "cmake_minimum_required(VERSION 3.25)\nproject(newer CXX)\n"
                          "find_package(pace 0.999 REQUIRED)\n")
        done = configure(self.scratch / "newer", self.scratch / "newer_build", self.prefix)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("pace", done.stderr)


class StableHeadersTest(unittest.TestCase):
    def test_the_page_and_the_headers_agree(self):
        src = source_tree.root() / "src"
        headers = {path.relative_to(src).as_posix(): path.read_text() for path in src.rglob("*.h")}
        page = (source_tree.root() / "docs/library.md").read_text()
        self.assertEqual(problems_of_stable_headers(page, headers), [])


class NestedTest(unittest.TestCase):
    def test_inside_another_project_only_the_libraries_are_configured(self):
        with tempfile.TemporaryDirectory() as scratch:
            scratch = pathlib.Path(scratch)
            source_tree.write(scratch, "CMakeLists.txt",
                              "cmake_minimum_required(VERSION 3.25)\nproject(outer CXX)\n"
                              f"add_subdirectory({source_tree.root()} pace)\n"
                              "add_executable(outer outer.cc)\n"
                              "target_link_libraries(outer PRIVATE pace::sim)\n")
            source_tree.write(scratch, "outer.cc", "int main() { return 0; }\n")
            done = configure(scratch, scratch / "build", "")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            ninja = (scratch / "build/build.ninja").read_text()
            self.assertIn("libpace_sim.a", ninja)
            for absent in ("libpace_text.a", "core_test", "-Werror", "gtest"):
                self.assertNotIn(absent, ninja)


class LibraryCheckCanFailTest(unittest.TestCase):
    def test_the_example_does_not_configure_without_the_package(self):
        with tempfile.TemporaryDirectory() as scratch:
            done = configure(source_tree.root() / "examples/own_trainer",
                             pathlib.Path(scratch) / "build", pathlib.Path(scratch) / "nothing")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("pace", done.stderr)

    def test_wrong_decisions_are_seen(self):
        right = ("step 0: 4 groups in the pool\n" +
                 "  group 1: admit (under_cutoff), staleness 0 waiting + 0 generation\n" * 4 +
                 "  group 2: reject (over_cutoff), staleness 2 waiting + 0 generation\n"
                 "stopped at version 1; right answers: 0.5\n")
        self.assertEqual(problems_of_output(right, 1), [])
        for wrong in (right.replace("step 0", "step 1"), right.replace("reject", "admit"),
                      right.replace("stopped at version 1", "stopped at version 2"), ""):
            self.assertNotEqual(problems_of_output(wrong, 1), [])

    def test_a_header_that_does_not_state_what_the_page_says_is_found(self):
        page = "| `core/ids.h` | ids |\n"
        stating = {"core/ids.h": f"// Ids. {_STABLE}\n#ifndef X\n"}
        self.assertEqual(problems_of_stable_headers(page, stating), [])
        self.assertEqual(len(problems_of_stable_headers(page, {"core/ids.h": "// Ids.\n"})), 1)
        self.assertEqual(len(problems_of_stable_headers("", stating)), 1)

    def test_a_path_of_the_checkout_in_the_package_is_found(self):
        with tempfile.TemporaryDirectory() as scratch:
            source_tree.write(scratch, "lib/pace-targets.cmake", "set(x /elsewhere/pace/src)\n")
            self.assertEqual(outside_paths(pathlib.Path(scratch), "/elsewhere/pace", "/none"),
                             ["pace-targets.cmake"])


if __name__ == "__main__":
    unittest.main()
