"""docs/cli.md and the program agree on commands, flags and examples.

Every command has a section, a section names exactly the flags of its command's --help, and its
example is a command line that the program would accept. Calls of pace on the other pages are
held to the same rules as far as they are written out.
"""

import re
import unittest

import pace_process

import doc_pages
import names_in_docs_test

_FLAG = re.compile(r"(?<![\w-])--?[a-z][a-z0-9-]*")
# Commands whose positionals are settings and overrides.
_WITH_SETTINGS = {"train", "eval", "sft", "data show", "serve", "sim", "advise", "config"}


class Command:
    """What --help says of one command."""

    def __init__(self, help_text):
        self.positionals = re.findall(r"^  (\w+) TEXT(?:\S*)( \.\.\.)?( REQUIRED)?",
                                      _part(help_text, "Positionals"), re.MULTILINE)
        self.options = {}
        for names, rest in re.findall(r"^  (-[^\s]*)(.*)$", _part(help_text, "Options"),
                                      re.MULTILINE):
            for name in names.split(","):
                self.options[name] = rest
        self.required = [name for name, rest in self.options.items() if "REQUIRED" in rest]

    def problems_of(self, words):
        """Why the program would refuse these words. Names in capitals stand for any value."""
        values, given, index = [], set(), 0
        while index < len(words):
            word, index = words[index], index + 1
            name, equals, _ = word.partition("=")
            if not name.startswith("-"):
                values.append(word)
                continue
            if name not in self.options:
                yield f"it has no flag {name}"
                continue
            given.add(name)
            kind = re.match(r" (TEXT|INT|UINT|FLOAT)(\S*)( \.\.\.)?", self.options[name])
            if kind is None or equals:
                continue
            if index == len(words):
                yield f"{name} lacks its value"
                continue
            yield from _value_problems(name, words[index], kind)
            index += 1
            # An option of many values takes numbers and words up to the next flag.
            while kind[3] and index < len(words) and "=" not in words[index] and not (
                    words[index].startswith("-")) and name in ("--shape", "--batch"):
                index += 1
        yield from (f"{name} is required" for name in self.required if name not in given)
        least = sum(bool(required) for _, _, required in self.positionals)
        most = None if any(many for _, many, _ in self.positionals) else len(self.positionals)
        if len(values) < least or (most is not None and len(values) > most):
            yield f"{len(values)} arguments"


def _value_problems(name, value, kind):
    if value.isupper():
        return
    choices = re.match(r":\{([^}]*)\}", kind[2])
    if choices and value not in choices[1].split(","):
        yield f"{name} is one of {choices[1]}, not {value}"
    if kind[1] in ("INT", "UINT") and not re.fullmatch(r"-?\d+", value):
        yield f"{name} is a number, not {value}"


def _part(help_text, title):
    match = re.search(rf"^{title}:\n(.*?)(?:\n\n|\Z)", help_text, re.DOTALL | re.MULTILINE)
    return match[1] if match else ""


def help_of(*words):
    done = pace_process.run(*words, "--help")
    assert done.returncode == 0, done.stderr
    return done.stdout


def commands():
    """Every command without subcommands, by its words."""
    found = {}
    waiting = [()]
    while waiting:
        words = waiting.pop()
        text = help_of(*words)
        names = re.findall(r"^  (\w+)", _part(text, "Subcommands"), re.MULTILINE)
        waiting += [(*words, name) for name in names]
        if not names:
            found[" ".join(words)] = Command(text)
    return found


def sections(page):
    parts = re.split(r"^## (.*)\n", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def problems_of_page(page, known):
    """How the reference page differs from the program."""
    found = []
    by_name = sections(page)
    found += [f"{name}: no section" for name in known if name not in by_name]
    for name, text in by_name.items():
        if name not in known:
            found.append(f"{name}: no such command")
            continue
        # `pace config --keys` in another command's section is config's flag.
        own = [span for span in doc_pages.spans(text) if not span.startswith("pace ")]
        named = {flag for span in own for flag in _FLAG.findall(span) if span.startswith("-")}
        expected = set(known[name].options) - {"-h", "--help"}
        found += [f"{name}: it has no flag {flag}" for flag in sorted(named - expected)]
        found += [f"{name}: {flag} is not on the page" for flag in sorted(expected - named)]
        calls = [words for words in doc_pages.pace_commands(text) if _name_of(words, {name: 0})]
        if not calls:
            found.append(f"{name}: no example")
    return found + problems_of_calls(page, known)


def problems_of_calls(page, known):
    """Calls that the program would refuse."""
    found = []
    for words in doc_pages.pace_commands(page):
        name = _name_of(words, known)
        if name is None:
            if words and not words[0].startswith("-") and not words[0].isupper() and not any(
                    command.split()[0] == words[0] for command in known):
                found.append(f"pace {' '.join(words)}: no such command")
            continue
        arguments = words[len(name.split()):]
        if arguments:  # `pace train` alone names the command
            found += [f"pace {' '.join(words)}: {problem}"
                      for problem in known[name].problems_of(arguments)
                      if not _is_mention(arguments, problem)]
    return found


def _name_of(words, known):
    for length in (2, 1):
        if (name := " ".join(words[:length])) in known:
            return name
    return None


def _is_mention(arguments, problem):
    """A call that only names a flag, as in `pace replay --from`, is no whole command line."""
    return len(arguments) <= 2 and any(word.startswith("-") for word in arguments) and (
        problem.endswith(("lacks its value", "is required", " arguments")))


def _first_value(assignment):
    """Of key=v1,v2, as --sweep has it: key=v1. A list in brackets stays whole."""
    return assignment if "[" in assignment else assignment.split(",")[0]


class CliPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.known = commands()
        cls.page = (pace_process.SOURCE / "docs" / "cli.md").read_text()

    def test_the_help_is_read(self):
        self.assertIn("data show", self.known)
        self.assertIn("sandbox serve", self.known)
        self.assertIn("--num-problems", self.known["data show"].options)
        self.assertEqual(self.known["export"].required, ["--model", "--to"])

    def test_the_page_names_every_command_flag_and_nothing_else(self):
        self.assertEqual(problems_of_page(self.page, self.known), [])

    def test_calls_on_other_pages_would_be_accepted(self):
        found = []
        for path in doc_pages.pages(pace_process.SOURCE):
            found += [f"{path.name}: {problem}"
                      for problem in problems_of_calls(path.read_text(), self.known)]
        self.assertEqual(found, [])

    def test_presets_methods_and_overrides_of_the_calls_exist(self):
        lists = [pace_process.run("config", flag).stdout for flag in ("--list", "--methods")]
        presets, methods = (set(re.findall(r"^[\w-]+|(?<=, )[\w-]+(?= )", text, re.MULTILINE))
                            for text in lists)
        with_overrides = {}
        for path in doc_pages.pages(pace_process.SOURCE):
            for words in doc_pages.pace_commands(path.read_text()):
                if (name := _name_of(words, self.known)) not in _WITH_SETTINGS:
                    continue
                call = words[len(name.split()):]
                place = f"{path.name}: pace {' '.join(words)}"
                for flag, value in zip(call, call[1:]):
                    if flag in ("--method", "--methods"):
                        for method in value.split(","):
                            self.assertIn(re.sub(r"-[\d.]+$", "-K", method), methods, place)
                preset = call[0] if call and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", call[0]) else ""
                self.assertIn(preset, presets | {""}, place)
                overrides = tuple(_first_value(word) for word in call
                                  if re.match(r"[a-z_]+(\.[a-z_0-9]+)?=", word))
                if overrides:
                    with_overrides[preset or "tiny", overrides] = place
        self.assertGreater(len(with_overrides), 5)
        for (preset, overrides), place in with_overrides.items():
            done = pace_process.run("config", preset, *overrides)
            self.assertEqual(done.returncode, 0, f"{place}: {done.stderr}")

    def test_the_sources_name_the_keys_that_the_program_has(self):
        # names_in_docs_test.py reads keys from the sources; this keeps its reading honest.
        keys = set(re.findall(r"^\| `([\w.]+)`", pace_process.run("config", "--keys").stdout,
                              re.MULTILINE))
        sources = names_in_docs_test.Sources(pace_process.SOURCE)
        self.assertEqual(set(sources.settings) - {"device", "admission.variant", "tools.kind"},
                         {key for key in keys if key.count(".") == 1})
        options = {key.rsplit(".", 1)[1] for key in keys if key.count(".") == 2}
        self.assertLessEqual(options, sources.options)
        self.assertEqual({name for name in sources.options - options
                          if not name.startswith("reject_")}, set())


class CliPageCheckCanFailTest(unittest.TestCase):
    HELP = ("Run\nUsage: pace run [OPTIONS] settings [overrides...]\n\nPositionals:\n"
            "  settings TEXT REQUIRED      A preset\n  overrides TEXT ...          More\n\n"
            "Options:\n  -h,--help                   Print\n  --out TEXT REQUIRED         Where\n"
            "  -n,--num INT=3              How many\n  --mode TEXT:{a,b}=a         Mode\n"
            "  --json                      JSON\n\nExample:\n  pace run\n")
    PAGE = ("# Command line\n## run\n```sh\npace run tiny --out x -n 3 --mode b --json > y\n```\n"
            "| `--out DIR` | |\n| `-n`, `--num N` | |\n| `--mode M`, `--json` | `pace x --y` |\n")

    def problems(self, page):
        return problems_of_page(page, {"run": Command(self.HELP), "x": Command("")})

    def test_a_page_that_agrees_is_fine(self):
        page = self.PAGE.replace("`pace x --y`", "")
        self.assertEqual(problems_of_page(page, {"run": Command(self.HELP)}), [])

    def test_a_missing_and_an_unknown_section_are_found(self):
        self.assertIn("x: no section", self.problems(self.PAGE))
        self.assertIn("y: no such command", self.problems(self.PAGE + "## y\n"))

    def test_a_missing_and_an_unknown_flag_are_found(self):
        self.assertIn("run: --json is not on the page",
                      self.problems(self.PAGE.replace("`--mode M`, `--json`", "`--mode M`")))
        self.assertIn("run: it has no flag --jso",
                      self.problems(self.PAGE.replace("`--json`", "`--jso`")))

    def test_a_missing_example_is_found(self):
        self.assertIn("run: no example", self.problems(self.PAGE.replace("pace run", "echo")))

    def test_an_example_that_would_be_refused_is_found(self):
        for word, by, problem in (
                ("--out x ", "", "--out is required"),
                ("-n 3", "-n three", "-n is a number, not three"),
                ("--mode b", "--mode c", "--mode is one of a,b, not c"),
                ("--json >", "--jsn >", "it has no flag --jsn"),
                ("--json >", "--json --out >", "--out lacks its value"),
                ("run tiny", "run", "0 arguments")):
            found = self.problems(self.PAGE.replace(word, by))
            self.assertTrue(any(line.startswith("pace run") and line.endswith(": " + problem)
                                for line in found), (problem, found))
        self.assertIn("pace walk tiny: no such command", self.problems(self.PAGE + "`pace walk tiny`"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
