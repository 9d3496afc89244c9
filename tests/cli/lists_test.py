"""Lists in --help and in the pages are those of the tables in the code.

The program prints its tables: `pace config --methods` and `--list`, the choices of
`pace bench`, the names that an unknown loss, advantage or verifier is told.
"""

import re
import unittest

import pace_process

# Generated from the results of comparisons, which do not run every method.
_GENERATED = {"results.md"}
# A paragraph that names this many methods, or presets, is a list of them.
_LIST = 8


def first_words(text):
    """The names in the first column of a printed table; `pace, effective` are two."""
    return [name.strip() for line in text.splitlines() if line.strip()
            for name in re.split(r"\s{2,}|(?<!,)\s", line.strip())[0].split(",")]


def names_after(text, start):
    """The comma-separated names that follow `start`, up to what cannot be a name."""
    found = re.search(re.escape(start) + r"\s*((?:[\w-]+(?:, | or |,)?)+)", text)
    return [] if found is None else re.findall(r"[\w-]+", found.group(1).replace(" or ", " "))


def table_with(page, name):
    """The names in the first column of the Markdown table that has a row for `name`."""
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        names = re.findall(r"^\| `([\w-]+)`", table, re.MULTILINE)
        if name in names:
            return names
    return []


def incomplete_lists(page, names):
    """Paragraphs that list some of the names, but not all: what is missing."""
    problems = []
    for paragraph in re.split(r"\n\s*\n", page):
        named = {name for name in names
                 if re.search(rf"`{re.escape(name).replace('K', '[KN]')}`", paragraph)}
        if _LIST <= len(named) < len(names):
            problems.append(f"{paragraph.strip().splitlines()[0]!r} lacks "
                            + ", ".join(sorted(set(names) - named)))
    return problems


def pages():
    return {path.name: path.read_text() for path in
            [pace_process.SOURCE / "README.md", *sorted((pace_process.SOURCE / "docs").glob("*.md"))]}


class ListsTest(unittest.TestCase):
    def printed(self, *arguments):
        done = pace_process.run(*arguments)
        return done.stdout + done.stderr

    def methods(self):
        names = first_words(self.printed("config", "--methods"))
        self.assertGreater(len(names), 15)
        # `pace` and `effective` are one method.
        return [name for name in names if name != "effective"]

    def test_help_lists_every_method(self):
        for command, option in (("sim", "as pace,async:"), ("train", "A method's settings:")):
            text = re.sub(r"\s+", " ", self.printed(command, "--help"))
            self.assertEqual(names_after(text, option), self.methods(), command)

    def test_pages_that_list_methods_or_presets_list_all(self):
        presets = first_words(self.printed("config", "--list"))
        self.assertIn("math-4b", presets)
        methods = self.methods()
        for name, page in pages().items():
            if name not in _GENERATED:
                self.assertEqual(incomplete_lists(page, methods), [], name)
                self.assertEqual(incomplete_lists(page, presets), [], name)

    def test_pages_have_every_loss_advantage_and_verifier(self):
        every = pages()
        for setting, page, known in (("train.loss", "losses.md", "ppo"),
                                     ("train.advantage", "losses.md", "grpo")):
            told = names_after(self.printed("train", "tiny", f"{setting}=no-such-name"),
                               "must be one of")
            self.assertIn(known, told, setting)
            self.assertEqual(sorted(table_with(every[page], known)), sorted(told), setting)
        told = names_after(re.sub(r"\s+", " ", self.printed("verify", "--help")), "compared:")
        self.assertEqual(table_with(every["rewards.md"], "dapo-strict"), told)

    def test_every_benchmark_is_on_a_page(self):
        text = "\n".join(pages().values())
        choices = re.search(r"\{([\w,-]+)\}", self.printed("bench", "--help"))
        self.assertEqual([name for name in choices.group(1).split(",")
                          if f"pace bench {name}" not in text], [])


class ListsCheckCanFailTest(unittest.TestCase):
    def test_names_are_read_from_what_the_program_prints(self):
        self.assertEqual(first_words("sync     on-policy\npace, effective  rejects\ntiny A model\n"),
                         ["sync", "pace", "effective", "tiny"])
        self.assertEqual(names_after("loss = xx: must be one of a, b-c or d\n", "must be one of"),
                         ["a", "b-c", "d"])
        self.assertEqual(names_after("nothing", "must be one of"), [])

    def test_a_row_that_a_page_lacks_is_seen(self):
        page = "| name | x |\n|---|---|\n| `ppo` | 1 |\n| `dapo` | 2 |\n\n| `grpo` | 3 |\n"
        self.assertEqual(table_with(page, "ppo"), ["ppo", "dapo"])
        self.assertEqual(table_with(page, "gae"), [])

    def test_a_list_that_lacks_a_method_is_found(self):
        methods = [f"m{i}" for i in range(8)] + ["stale-K"]
        whole = ", ".join(f"`{name}`" for name in methods)
        self.assertEqual(incomplete_lists(f"Methods: {whole}.", methods), [])
        short = whole.replace("`stale-K`", "")
        self.assertIn("stale-K", incomplete_lists(f"Methods: {short}.", methods)[0])
        self.assertEqual(incomplete_lists("Run `m1` and `m2`.", methods), [])


if __name__ == "__main__":
    unittest.main()
