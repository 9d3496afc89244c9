"""What README.md and docs/*.md name exists, and what they list is complete.

Paths, links with their anchors, C++ names, tests, `pace` flags, settings with their values, and
metrics must exist. Lists (losses, estimators, verifiers, policies) must hold what the tables in the
code hold. All of it is read from the sources, so that the check needs no build;
tests/cli/cli_page_test.py checks commands against the program itself.
"""

import functools
import pathlib
import re
import tempfile
import unittest

import doc_pages
import source_tree

_CODE = {".h", ".cc", ".cu", ".cuh"}
_FILE = re.compile(r"^[\w./*-]+\.(?:h|cc|cu|cuh|py)$")
_TOP_FOLDERS = ("src", "tests", "scripts", "docs", "cmake", "experiments", "results")
# What other programs and systems call their own.
_FOREIGN_NAMES = {"AgentLoopWorkerTQ", "PromptGroupSampler", "ReplayBufferAsync", "TrainSink",
                  "TypeError", "WorkflowExecutor"}
_FOREIGN_FLAGS = {"--account", "--buffer-filter-path", "--gpu-memory-utilization", "--max-num-seqs",
                  "--weight-transfer-config",
                  "--over-sampling-batch-size", "--partition", "--preset", "--privileged",
                  "--rollout-function-path"}
# Tables in the code, how a row names its entry, and the page that lists the entries.
_TABLES = (
    ("src/config/loss_options.cc", r'\{"(\w+)", (?:FieldsOf|No)', "docs/losses.md"),
    ("src/config/advantage_options.cc", r'\{"(\w+)", (?:FieldsOf|No)', "docs/losses.md"),
    ("src/reward/verifier.cc", r'\{VerifierMode::\w+, "([\w-]+)"\}', "docs/rewards.md"),
)
_POLICIES = ("admission.policy", "supply.policy")
# Stand for what a reader writes.
_PLACEHOLDER = re.compile(r"\bmy_|…|\.\.\.|NAME|NNNN")


def _without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


class Sources:
    """What a tree defines."""

    def __init__(self, tree):
        self.tree = pathlib.Path(tree)
        self.files = {str(path) for path in source_tree.files(tree)}
        self.folders = {str(parent) for name in self.files
                        for parent in pathlib.PurePath(name).parents}
        self.basenames = {pathlib.PurePath(name).name for name in self.files}
        code = {name: _without_comments(self.text(name)) for name in self.files
                if name.startswith(("src/", "tests/")) and pathlib.PurePath(name).suffix in _CODE}
        everything = "\n".join(code.values())
        self.code = everything
        self.words = set(re.findall(r"\b[A-Za-z_]\w*\b", everything))
        self.members = {}
        for text in code.values():
            words = set(re.findall(r"\b\w+\b", text))
            owners = re.findall(r"\b(?:class|struct|enum class) (\w+)|\b(\w+)::", text)
            for owner in {a or b for a, b in owners}:
                self.members.setdefault(owner, set()).update(words)
        self.cases = {f"{suite}.{case}" for suite, case in
                      re.findall(r"\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", everything)}
        cmake = "\n".join(self.text(name) for name in self.files
                          if name.endswith(("CMakeLists.txt", ".cmake")))
        self.tests = set(re.findall(r"\bpace_(?:python_)?test\(\s*(\w+)", cmake))
        self.environment = set(re.findall(r"\bPACE_\w+\b", cmake + everything + "\n".join(
            self.text(name) for name in self.files
            if name.startswith(("scripts/", "tests/", "python/")) and pathlib.PurePath(name).suffix in
            {"", ".py"}) + self.text("Makefile")))
        self.flags = {"--help", "--version"}
        for name, text in code.items():
            if name.startswith("src/cli/"):
                for names in re.findall(r"add_(?:option|flag)\w*\(\s*\"([^\"]*)\"", text):
                    self.flags.update(names.split(","))
        # Classes and commands of the Python package.
        for name in self.files:
            if name.startswith("python/pace/"):
                self.words.update(re.findall(r"^class (\w+)", self.text(name), re.MULTILINE))
                self.flags.update(re.findall(r"add_argument\(\s*\"(--[\w-]+)\"", self.text(name)))
        self.settings = self._settings(code)
        self.options = self._options(code)
        self.metrics = self._metrics(code)
        self.families = {name.split("/")[0] for name in self.metrics}

    def text(self, name):
        path = self.tree / name
        try:
            return path.read_text(encoding="utf-8") if path.is_file() else ""
        except UnicodeDecodeError:
            return ""

    def _settings(self, code):
        """Key -> the names of its values, or None where it is no enum."""
        fields = {}
        for name, text in code.items():
            if not name.startswith("src/config/"):
                continue
            lists = {array: re.findall(r'"([^"]*)"', values) for array, values in
                     re.findall(r"\b(k\w+) = \{([^}]*)\};", text)}
            for method, argument, body in re.findall(
                    r"(?:(\w+)::Fields\(\)|\w+Fields\((\w+)& \w+\)) \{\n(.*?)^\}", text,
                    re.DOTALL | re.MULTILINE):
                owner = method or argument
                for kind, key, array in re.findall(
                        r"Field::(\w+)\(\s*\"(\w+)\",\s*[\w.]+,\s*(\w*)", body):
                    fields.setdefault(owner, {})[key] = (
                        lists.get(array) if kind == "Enum" else None)
                # Values that are texts of a form, by their first word: python:FILE:CLASS.
                for key, word in re.findall(
                        r'Field::Enum\(\s*"(\w+)"(?:(?!Field::).)*?\.OrText\("(\w+):', body,
                        re.DOTALL):
                    fields[owner][key] = [*fields[owner][key], word]
                for key in re.findall(r"\b(?:\w+Of|Estimator)\(\s*\"(\w+)\"", body):
                    fields.setdefault(owner, {})[key] = None
        found = {"device": ["cpu", "cuda"], "admission.variant": None, "tools.kind": None}
        header = code.get("src/config/settings.h", "")
        sections = re.findall(r"\{\"(\w+)\", \"[^\"]*\",\s*FieldsOf<&Settings::(\w+)>\}",
                              code.get("src/config/settings.cc", ""))
        for section, variable in sections:
            owner = re.search(rf"\b(\w+) {variable};", header)[1]
            found.update({f"{section}.{key}": values for key, values in fields.get(owner, {}).items()})
        return found

    def _options(self, code):
        """Options of losses, advantages and corrections, as clip_high in train.loss.clip_high."""
        text = "".join(code.get(f"src/config/{name}_options.cc", "")
                       for name in ("loss", "advantage", "correction"))
        text = re.sub(r"ERROR\(\s*Field::\w+\(", "", text)
        found = set(re.findall(r"(?:Field::\w+|\b(?:Width|Bound))\(\s*\"(\w+)\"", text))
        # These names are made of a level and a measure.
        return found | {f"reject_{level}_k{k}{end}" for k in (1, 2, 3) for end in ("", "_lower")
                        for level in ("token", "seq_sum", "seq_mean", "seq_max")}

    def _metrics(self, code):
        found = set()
        for name, text in code.items():
            if name.endswith("_test.cc") or not name.startswith(
                    ("src/record/", "src/train/", "src/execution/")):
                continue
            bare = re.sub(r"^#include.*$", "", text, flags=re.MULTILINE)
            spread = set(re.findall(r"put_spread\(\"([\w/]+)\"", bare))
            found.update(f"{metric}/{part}" for metric in spread for part in ("mean", "max"))
            found.update(set(re.findall(r"\"([a-z]+/[a-z_0-9]+)\"", bare)) - spread)
            found.update(f"eval/<benchmark>/{metric}{'@k' if has_k else ''}{tail}"
                         for metric, has_k, tail in re.findall(
                             r"prefix \+ \"(\w+)\"( \+ k)?(?: \+ \"(\w+)\")?", bare))
            found.update(f"worker/<n>/{metric}"
                         for metric in re.findall(r"put_worker\(\"(\w+)\"", bare))
        return found


class Page:
    """The problems of one page, as `page: what is wrong`."""

    def __init__(self, sources, path):
        self.sources = sources
        self.path = path
        self.name = str(path.relative_to(sources.tree))
        self.text = path.read_text(encoding="utf-8")

    def problems(self):
        found = [*self._links(), *self._quotes()]
        for span in doc_pages.spans(self.text):
            found += self._names_of(span)
            found += self._setting_of(span)
        for line in [*doc_pages.spans(self.text), *doc_pages.shell_lines(self.text)]:
            for word in doc_pages.words_of(line):
                found += self._path_of(word)
        for words in doc_pages.pace_commands(self.text):
            found += self._command(words)
        return [f"{self.name}: {problem}" for problem in dict.fromkeys(found)]

    def _links(self):
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)",
                                         doc_pages.prose(self.text)):
            if "://" in target:
                continue
            path = self.path.parent / target if target else self.path
            if not path.exists():
                yield f"the link to {target} leads nowhere"
            elif anchor and path.suffix == ".md":
                if anchor not in doc_pages.anchors(path.read_text(encoding="utf-8")):
                    yield f"{target or 'this page'} has no heading #{anchor}"

    def _quotes(self):
        """A function that a page quotes stands in the sources as it does on the page."""
        for block in doc_pages.blocks(self.text, "cpp"):
            first = block.splitlines()[0]
            if first.endswith("{") and _without_comments(block) not in self.sources.code:
                yield f"the sources have another '{first}'"

    def _names_of(self, span):
        sources = self.sources
        if _PLACEHOLDER.search(span):
            return
        if match := re.match(r"^(\w+Test)\.(\w+|\*)$", span):
            if match[2] == "*":
                if not any(case.startswith(match[1] + ".") for case in sources.cases):
                    yield f"no tests are named {span}"
            elif span not in sources.cases:
                yield f"no test is named {span}"
        elif match := re.match(r"^([A-Z]\w*)::(\w+)\b", span):
            if match[2] not in sources.members.get(match[1], ()):
                yield f"{match[0]} is not in the sources"
        elif match := re.match(r"^([A-Z]\w*[a-z]\w*)(?:[<(].*)?$", span):
            if match[1] not in sources.words | _FOREIGN_NAMES:
                yield f"{match[1]} is not in the sources"
        elif match := re.match(r"^(PACE_\w+)\b", span):
            if match[1] not in sources.environment:
                yield f"{match[1]} is not in the sources"
        elif re.match(r"^[a-z]\w*_$", span):
            if span not in sources.words:
                yield f"{span} is not in the sources"
        elif match := re.match(r"^(--[a-z][a-z0-9-]*)\b", span):
            if match[1] not in sources.flags | _FOREIGN_FLAGS:
                yield f"no command has the flag {match[1]}"

    def _setting_of(self, text):
        for key, value in re.findall(r"(?<![\w./-])([a-z]+(?:\.(?:[a-z]\w*|\*)))"
                                     r"(?:(?:=|: )([\w.+-]+))?(?![\w(/])", text):
            section, name = key.split(".")
            known = [known for known in self.sources.settings if known.startswith(section + ".")]
            if not known or name == "*" or f"{key}" in self.sources.basenames:
                continue
            if re.search(r"\.(?:jsonl?|ya?ml|html|safetensors|bin|h|cc|py|md|txt)$", key):
                continue
            yield from self._value_of(key, value)
        for key, option in re.findall(r"(?<![\w./-])(train\.[a-z_]+)\.([a-z]\w*)(?![\w(/.])", text):
            if option not in self.sources.options:
                yield f"{key} has no option {option}"

    def _value_of(self, key, value):
        settings = self.sources.settings
        if key not in settings:
            yield f"no setting is named {key}"
        elif value and settings[key] is not None and not value.isupper():
            if value not in settings[key]:
                yield f"{key} has no value {value}"

    def _path_of(self, word):
        word = word.rstrip(".,;:")
        if _PLACEHOLDER.search(word) or "://" in word:
            return
        for path in doc_pages.expand(word):
            yield from self._one_path(path)

    def _one_path(self, path):
        sources = self.sources
        head, _, rest = path.partition("/")
        if match := re.match(r"^(?:build/)?([a-z]\w*_test)$", path):
            if match[1] not in sources.tests:
                yield f"no test program is named {match[1]}"
        elif head in _TOP_FOLDERS and rest and re.match(r"^[\w./*<>-]+$", path):
            if not self._is_there(path) and path not in sources.metrics:
                yield f"{path} does not exist"
        elif _FILE.match(path) and rest and f"src/{head}" in sources.folders:
            if not self._is_there(f"src/{path}"):
                yield f"src/{path} does not exist"
        elif _FILE.match(path) and not rest and "*" not in path:
            if path not in sources.basenames and path != "main.py":
                yield f"no file is named {path}"
        elif head in sources.families and rest and re.match(r"^[\w/@<>-]+$", path):
            if path not in sources.metrics and f"src/{path.rstrip('/')}" not in sources.folders:
                yield f"no metric is named {path}"

    def _is_there(self, path):
        path = path.rstrip("/")
        if path in self.sources.files or path in self.sources.folders:
            return True
        return "*" in path and any(self.sources.tree.glob(path))

    def _command(self, words):
        for word in words:
            if match := re.match(r"^(--[a-z][a-z0-9-]*)(?:=|$)", word):
                if match[1] not in self.sources.flags:
                    yield f"pace {' '.join(words)}: no command has the flag {match[1]}"
            elif match := re.match(r"^([a-z]+\.[a-z_0-9]+)=([\w.+-]*)", word):
                yield from self._value_of(match[1], match[2])


def problems_of(sources):
    return [problem for path in doc_pages.pages(sources.tree)
            for problem in Page(sources, path).problems()]


def listed(sources, page):
    """What the first cells of a page's tables name."""
    cells = re.findall(r"^\| ([^|]*) \|", sources.text(page), re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"[`\[]([\w-]+)[`\]]", cell)}


def problems_of_lists(sources):
    lists = {source: (re.findall(row, sources.text(source)), page) for source, row, page in _TABLES}
    lists.update({key: (sources.settings.get(key) or [], "docs/policies.md") for key in _POLICIES})
    for source, (names, page) in lists.items():
        if not names:
            yield f"{source}: no names are found in it"
        for name in sorted(set(names) - listed(sources, page)):
            yield f"{page}: {name} of {source} is in no table"
    counted = re.search(r"(\d+) policy losses, (\d+) advantage estimators", sources.text("README.md"))
    counts = tuple(str(len(lists[source][0])) for source, _, _ in _TABLES[:2])
    if counted and counted.groups() != counts:
        yield f"README.md: {' and '.join(counted.groups())}, but there are {' and '.join(counts)}"


@functools.cache
def the_sources():
    return Sources(source_tree.root())


class NamesInDocsTest(unittest.TestCase):
    def test_what_the_pages_name_exists(self):
        problems = problems_of(the_sources())
        if problems:
            self.fail("\n" + "\n".join(problems))

    def test_lists_are_complete(self):
        self.assertEqual(list(problems_of_lists(the_sources())), [])

    def test_the_sources_are_read(self):
        sources = the_sources()
        self.assertIn("Coordinator", sources.words)
        self.assertIn("Handle", sources.members["Coordinator"])
        self.assertIn("--resume", sources.flags)
        self.assertIn("quota", sources.settings["supply.policy"])
        self.assertIsNone(sources.settings["run.num_steps"])
        self.assertIn("layers_test", sources.tests)
        for metric in ("staleness/waiting/mean", "time/step", "train/loss", "data/epoch",
                       "eval/<benchmark>/mean@k", "eval/<benchmark>/mean@k_half_width"):
            self.assertIn(metric, sources.metrics)


class NamesInDocsCheckCanFailTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.tree = scratch.name
        files = {
            "src/pool/pool_state.h": "class PoolState {\n  void Put();\n};\n// Old: PoolBooks\n",
            "src/pool/pool_state_test.cc": "TEST(PoolStateTest, PutsAGroup) {}\n",
            "src/pool/CMakeLists.txt": "pace_test(pool_state_test SRCS pool_state_test.cc)\n",
            "src/cli/main.cc": 'app.add_option("-n,--num", n, "");\n',
            "src/config/settings.h": "struct Settings {\n  RunOptions run;\n};\n",
            "src/config/settings.cc": '    {"run", "The run.", FieldsOf<&Settings::run>},\n',
            "src/config/run_options.cc":
                'constexpr auto kKinds = {"a", "b"};\n'
                "std::vector<Field> RunOptions::Fields() {\n"
                '  return {Field::Int("seed", seed, "."),\n'
                '          Field::Enum("kind", kind, kKinds, ".").OrText("own:FILE", text)};\n'
                "}\n",
            "src/config/loss_options.cc": 'return {Field::Real("clip_low", clip_low, ".")};\n',
            "src/record/step_metrics.cc": 'put("pool/occupancy", 1);\n',
            "docs/method.md": "## 6.3 Where it `holds`\n",
        }
        for path, text in files.items():
            source_tree.write(self.tree, path, text)

    def problems(self, text):
        source_tree.write(self.tree, "README.md", text)
        return problems_of(Sources(self.tree))

    def assert_found(self, text, problem):
        self.assertEqual(self.problems(text), [f"README.md: {problem}"], text)

    def test_what_exists_is_fine(self):
        self.assertEqual(self.problems(
            "`src/pool/pool_state.{h,cc}`".replace(",cc", "") + " `pool/pool_state.h` `src/pool`\n"
            "`pool_state.h` `PoolState` `PoolState::Put` `Put()` `PoolStateTest.PutsAGroup`\n"
            "`pool_state_test` `pool/occupancy` `run.seed` `run.*` `run.kind: a` `run.jsonl`\n"
            "`--num` `pace sim --num 3 run.seed=4` [m](docs/method.md#63-where-it-holds)\n"
            "`src/pool/my_pool.h` `verl/queue.md` [w](https://x.org/a#b)\n\n"
            "    pace sim math run.kind=b --num 2 > out.json  # --other\n"), [])

    def test_a_missing_option_is_found(self):
        self.assertEqual(self.problems("`train.loss.clip_low`"), [])
        self.assert_found("`train.loss.clip_lower`", "train.loss has no option clip_lower")

    def test_a_missing_path_is_found(self):
        self.assert_found("`src/pool/books.h`", "src/pool/books.h does not exist")
        self.assert_found("`pool/books.h`", "src/pool/books.h does not exist")
        self.assert_found("`books.h`", "no file is named books.h")
        self.assert_found("`pool/{pool_state,books}.h`", "src/pool/books.h does not exist")
        self.assert_found("`books_test`", "no test program is named books_test")
        self.assert_found("see\n\n    python3 scripts/x.py\n", "scripts/x.py does not exist")

    def test_a_link_to_nothing_is_found(self):
        self.assert_found("[x](docs/x.md)", "the link to docs/x.md leads nowhere")
        self.assert_found("[x](docs/method.md#64-no)", "docs/method.md has no heading #64-no")
        self.assert_found("[x](#no)", "this page has no heading #no")

    def test_an_unknown_name_is_found(self):
        # A name that only a comment has is a name of the past.
        self.assert_found("`PoolBooks`", "PoolBooks is not in the sources")
        self.assert_found("`Books(pool)`", "Books is not in the sources")
        self.assert_found("`PoolState::Sell`", "PoolState::Sell is not in the sources")
        self.assert_found("`books_`", "books_ is not in the sources")
        self.assert_found("`PACE_BOOKS=1`", "PACE_BOOKS is not in the sources")
        self.assert_found("`PoolStateTest.Sells`", "no test is named PoolStateTest.Sells")
        self.assert_found("`BooksTest.*`", "no tests are named BooksTest.*")

    def test_another_body_of_a_quoted_function_is_found(self):
        quote = "```cpp\nclass PoolState {\n  void Put();\n};\n```\n"
        self.assertEqual(self.problems(quote), [])
        self.assert_found(quote.replace("Put", "Sell"),
                          "the sources have another 'class PoolState {'")

    def test_an_unknown_flag_is_found(self):
        self.assert_found("`--books`", "no command has the flag --books")
        self.assert_found("```sh\n$ build/pace sim --books=3\n```\n",
                          "pace sim --books=3: no command has the flag --books")

    def test_an_unknown_setting_or_value_is_found(self):
        self.assert_found("`run.books`", "no setting is named run.books")
        self.assert_found("`run.kind: c`", "run.kind has no value c")
        self.assert_found("`run.kind: own:a.txt`, `run.kind: c`", "run.kind has no value c")
        self.assert_found("see\n\n    pace sim x run.kind=c\n", "run.kind has no value c")

    def test_an_incomplete_list_is_found(self):
        files = {
            "src/config/loss_options.cc": '{"ppo", FieldsOf<&LossOptions::ppo>}, {"dis", NoFields}',
            "src/config/advantage_options.cc": '{"grpo", FieldsOf<&AdvantageOptions::grpo>}',
            "src/reward/verifier.cc": '{VerifierMode::kDapo, "dapo-int"}',
            "docs/losses.md": "| `ppo` | as `dis` |\n| `grpo` (default) | |\n",
            "docs/rewards.md": "| `dapo-int` | |\n",
            "README.md": "2 policy losses, 3 advantage estimators\n",
        }
        for path, text in files.items():
            source_tree.write(self.tree, path, text)
        self.assertEqual(list(problems_of_lists(Sources(self.tree))), [
            "docs/losses.md: dis of src/config/loss_options.cc is in no table",
            "admission.policy: no names are found in it",
            "supply.policy: no names are found in it",
            "README.md: 2 and 3, but there are 2 and 1"])

    def test_an_unknown_metric_is_found(self):
        self.assert_found("`pool/books`", "no metric is named pool/books")


if __name__ == "__main__":
    unittest.main()
