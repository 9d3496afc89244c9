"""pace generate in a terminal: a chat, streamed, that Ctrl-C stops and Ctrl-D ends."""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import tempfile
import termios
import time
import unittest

import pace_process
import stories

CTRL_C, CTRL_D = b"\x03", b"\x04"
# The characters that end a turn are one token; it is in no other text.
TEMPLATE = ("{% for m in messages %}{{ '|' if m.role == 'assistant' else '' }}{{ m.content }}</s>"
            "{% endfor %}{{ '|' if add_generation_prompt else '' }}")


class Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, *arguments):
        try:
            self.master, slave = pty.openpty()
        except OSError as error:  # no /dev/pts here
            raise unittest.SkipTest(f"no pseudo-terminal: {error}") from error
        self.process = subprocess.Popen(
            [str(pace_process.BINARY), *map(str, arguments)], stdin=slave, stdout=slave,
            stderr=slave, start_new_session=True, close_fds=True,
            preexec_fn=self.take_terminal)
        os.close(slave)
        self.text = ""

    @staticmethod
    def take_terminal():
        # Ctrl-C reaches those whose terminal it is.
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def send(self, data):
        os.write(self.master, data if isinstance(data, bytes) else data.encode())

    def read_until(self, pattern):
        """What came up to a match, the match included."""
        deadline = time.monotonic() + pace_process.PATIENCE
        while True:
            match = re.search(pattern, self.text)
            if match:
                seen, self.text = self.text[:match.end()], self.text[match.end():]
                return seen
            if not select.select([self.master], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise AssertionError(f"no {pattern!r} in {self.text!r}")
            try:
                data = os.read(self.master, 65536)
            except OSError:
                data = b""
            if not data:
                raise AssertionError(f"the end, no {pattern!r} in {self.text!r}")
            self.text += data.decode(errors="replace").replace("\r\n", "\n")

    def wait(self):
        code = self.process.wait(timeout=pace_process.PATIENCE)
        os.close(self.master)
        return code


@unittest.skipIf(stories.missing(), stories.missing())
class ChatTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.model = stories.import_into(scratch.name)

    def start(self, *arguments, model=None):
        terminal = Terminal("generate", "--model", model or self.model, "--greedy", *arguments)
        self.addCleanup(terminal.process.wait)
        self.addCleanup(terminal.process.kill)
        terminal.read_until(r"\n> $")
        return terminal

    def copy(self, file, **changes):
        """The model with other values in one of its JSON files."""
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        model = pathlib.Path(scratch.name) / "model"
        shutil.copytree(self.model, model)
        value = json.loads((model / file).read_text())
        (model / file).write_text(json.dumps({**value, **changes}))
        return model

    def test_a_reply_streams_and_is_measured(self):
        terminal = self.start("--max-tokens", 12)
        terminal.send("Once upon a time\n")
        seen = terminal.read_until(r"\] *\n> $")
        ids, _ = stories.greedy(stories.Vocabulary().encode("Once upon a time"), 12)
        self.assertIn(stories.Vocabulary().decode(ids), seen)
        self.assertRegex(seen, r"\[5 tokens in, .* 12 tokens out, [0-9.]+ tokens/s\]")
        terminal.send(CTRL_D)
        self.assertEqual(terminal.wait(), 0)

    def test_turns_keep_their_tokens_until_reset(self):
        terminal = self.start("--max-tokens", 12)
        counts = []
        for message in ("Once upon a time\n", "a\n", "/reset\n", "Once upon a time\n"):
            terminal.send(message)
            seen = terminal.read_until(r"\n> $")
            counts += map(int, re.findall(r"\[(\d+) tokens in", seen))
        # 5 of the first message, 12 of the reply, " a" as one token.
        self.assertEqual(counts, [5, 18, 5])
        terminal.send("/quit\n")
        self.assertEqual(terminal.wait(), 0)

    def test_ctrl_c_stops_the_reply_and_not_the_program(self):
        # Far more tokens than it can generate before it is stopped.
        model = self.copy("config.json", max_position_embeddings=200_000)
        terminal = self.start("--ignore-eos", "--max-tokens", 190_000, model=model)
        terminal.send("Once upon a time\n")
        terminal.read_until("there was")
        terminal.send(CTRL_C)
        seen = terminal.read_until(r"tokens/s\]\n> $")
        stopped = int(re.search(r"(\d+) tokens out", seen).group(1))
        self.assertGreater(stopped, 0)
        self.assertLess(stopped, 190_000)
        # At the prompt it only says how to end.
        terminal.send(CTRL_C)
        self.assertIn("Ctrl-D", terminal.read_until(r"\n> $"))
        terminal.send("and\n")
        terminal.read_until(r"[a-z] ")
        terminal.send(CTRL_C)
        seen = terminal.read_until(r"tokens/s\]\n> $")
        self.assertIn(f"[{5 + stopped + 1} tokens in", seen)
        terminal.send(CTRL_D)
        self.assertEqual(terminal.wait(), 0)

    def test_a_reply_ends_where_the_positions_do(self):
        terminal = self.start("--ignore-eos", "--max-tokens", 500)
        for message, num_in, num_out in [("Once upon a time\n", 5, 500), ("and\n", 506, 6)]:
            terminal.send(message)
            seen = terminal.read_until(r"tokens/s\]\n> $")
            self.assertRegex(seen, rf"\[{num_in} tokens in, .* {num_out} tokens out")
        terminal.send("and\n")
        self.assertIn("/reset", terminal.read_until(r"\n> $"))
        terminal.send(CTRL_D)
        self.assertEqual(terminal.wait(), 0)

    def test_a_message_that_does_not_fit_leaves_the_chat_as_it_was(self):
        terminal = self.start("--max-tokens", 4)
        terminal.send("word " * 600 + "\n")
        self.assertIn("512 positions", terminal.read_until(r"\n> $"))
        terminal.send("Once\n")
        self.assertRegex(terminal.read_until(r"\n> $"), r"\[2 tokens in")
        terminal.send("/nonsense\n")
        self.assertIn("/reset", terminal.read_until(r"\n> $"))
        terminal.send(CTRL_D)
        self.assertEqual(terminal.wait(), 0)

    def test_with_a_template_only_the_new_turn_is_added(self):
        model = self.copy("tokenizer_config.json", chat_template=TEMPLATE)
        done = pace_process.run(
            "generate", "--model", model, "--greedy", "--chat", "--max-tokens", 10,
            "--system", "Tell", lines=["Once upon a time", "One day"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("tokenized again", done.stderr)
        first, second = map(int, re.findall(r"\[(\d+) tokens in", done.stderr))
        # system </s> message </s> | ... </s> message </s> |
        vocabulary = stories.Vocabulary()
        system, message, added, bar = (len(vocabulary.encode(text)) - 1 for text in
                                       ("Tell", "Once upon a time", "One day", "|"))
        self.assertEqual(first, system + 1 + message + 1 + bar)
        self.assertEqual(second, first + 10 + 1 + added + 1 + bar)

    def test_thinking_and_variables_reach_the_template(self):
        template = TEMPLATE + "{{ 'aaaa' if enable_thinking is defined and not enable_thinking }}" \
            "{{ word if word is defined }}"
        model = self.copy("tokenizer_config.json", chat_template=template)

        def tokens_in(*options):
            done = pace_process.run("generate", "--model", model, "--greedy", "--chat",
                                    "--max-tokens", 2, *options, lines=["Once"])
            self.assertEqual(done.returncode, 0, done.stderr)
            return int(re.search(r"\[(\d+) tokens in", done.stderr).group(1))

        plain = tokens_in()
        self.assertEqual(tokens_in("--thinking", "on"), plain)
        self.assertGreater(tokens_in("--thinking", "off"), plain)
        self.assertGreater(tokens_in("--template-variable", "word=bbbb"), plain)
        refused = pace_process.run("generate", "--model", model, "--chat", "--template-variable",
                                   "word", lines=["Once"])
        self.assertEqual(refused.returncode, 2)
        self.assertIn("name=value", refused.stderr)

    def test_a_template_that_changes_earlier_turns_is_told(self):
        template = TEMPLATE.replace("{{ m.content }}", "{{ m.content[:3] }}")
        model = self.copy("tokenizer_config.json", chat_template=template)
        done = pace_process.run("generate", "--model", model, "--greedy", "--chat",
                                "--max-tokens", 10, lines=["Once upon a time", "One day"])
        self.assertEqual(done.stderr.count("tokenized again"), 1, done.stderr)

    def test_a_chat_needs_no_terminal_but_a_tokenizer(self):
        done = pace_process.run("generate", "--model", self.model, "--chat", "--greedy",
                                "--max-tokens", 5, lines=["Once upon a time"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, ", there was a little\n")
        done = pace_process.run("generate", "--model", self.model, "--chat", "--system", "x",
                                lines=[])
        self.assertEqual(done.returncode, 2)
        self.assertIn("chat template", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
