"""Tokenizers of a few hundred entries, trained on the text below, and what `tokenizers` does
with them."""

import json
import os
import random
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tokenizers  # noqa: E402
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402

import golden_files  # noqa: E402

MARK = "\u2581"

CORPUS = """
The trainer draws a batch from the pool while the workers keep writing responses.
A response that waited for three steps is staler than one that has just arrived.
Every worker counts its tokens, and every token remembers the version that sampled it.
When the weights move, the writer stops, takes the new ones and writes on from there.
If nobody waits, nothing is stale; if everybody waits, nothing moves at all.
Seven small boats sailed past the lighthouse before the rain began to fall.
The baker sells nine loaves before noon and twelve more after the bell has rung.
She doesn't know why they've left, but I'm sure we'll find out: it's what he'd want.
Let x = 3 and y = 14; then x * y = 42, and 42 / 6 = 7. Answer: 7
def add(first, second):
    # the sum of both
    return first + second

for index in range(10):
\tprint(index, add(index, 2 * index))
{"name": "add", "arguments": {"first": 1, "second": 2.5, "note": null}}
Le boulanger a d\u00e9j\u00e0 vendu ses g\u00e2teaux; la p\u00e2te l\u00e8ve encore pr\u00e8s du four.
Der m\u00fcde Schl\u00fcsselmacher \u00f6ffnet die gro\u00dfe T\u00fcr f\u00fcr \u00fcbern\u00e4chtigte G\u00e4ste.
\u041f\u0435\u043a\u0430\u0440\u044c \u043f\u0440\u043e\u0434\u0430\u043b \u0432\u0435\u0441\u044c \u0445\u043b\u0435\u0431 \u0434\u043e \u043e\u0431\u0435\u0434\u0430.
\u6211\u4eec\u5728\u6c60\u8fb9\u7b49\u65b0\u7684\u56de\u7b54\uff0c\u8001\u7684\u5148\u7528\u6389\u3002
The pool is full, the pool is empty, the pool is full again. \u2713 \u2192 \U0001F40D
"""

# What every tokenizer of this file encodes. None of it is in any other data set.
TEXTS = [
    "", " ", "   ", "\n", "\t\t", " \n \r\n  \n", "a", "A", "\u00e9", "e\u0301", "\U0001F40D",
    "The pool is full.", "the trainer draws a batch", "  two spaces before, two after  ",
    "staler and staler", "UNTRAINED Words zyx", "I'm sure they'd say it's what we've got, y'all'll",
    "I'M SURE THEY'D SAY IT'S", "x=3;y=14;x*y=42", "3 14 159 2653 58979", "1,234,567.890",
    "\u0663\u0664\u0665 \u2167 \u00bd", "def f(x):\n    return x ** 2\n\n\n", "a\tb\t\tc\r\nd\re",
    '{"name": "add", "arguments": {"first": -1}}', "Schl\u00fcsselm\u00fc\u0308de",
    "g\u00e2teau ga\u0302teau", "\u6c60\u8fb9\u7684\u65b0\u56de\u7b54", "\u65b0new\u65b0",
    "\u041f\u0435\u043a\u0430\u0440\u044c 7", "\u0928\u092e\u0938\u094d\u0924\u0947",
    "\u0645\u0631\u062d\u0628\u0627 pool", "\ud55c\uad6d\uc5b4 \u3072\u3089", "\ufb01ne \ufb03 \u2460",
    "\U0001F469\u200D\U0001F680 lifts off", "\u200b\u00a0\u3000wide\u2028spaces\u2029here",
    "tab\u000bfeed\u000cline\u0085next", "null\x00byte\x1b[0m", "\ufeffbegins with a mark",
    "\ufffd and \ufffe", "a" * 40, "ab" * 15 + "!" * 12, " " * 17 + "x", "-" * 9 + " = " + "." * 7,
    "<|stop|>", "a<|stop|>b", "<|begin|>user\nhello<|stop|>\n", "<call>{}</call>", "<<|stop|>>",
    "<|stop", "<|stop|><|stop|> <|stop|>", "<call> x </call>y", MARK, MARK + MARK + "a " + MARK,
    "caf\u00e9<|stop|>cafe\u0301", "the<call>the</call>the", "\\frac{1}{2} \\boxed{x^2+1}",
    "don\u2019t \u201cquote\u201d \u2014 dash\u2026", "http://example.org/a_b?c=d&e=%20f#g",
    "\u0130\u0131\u017f\u00df\u1e9e", "\U00020000\U0002A6D6\u4e3d", "a\u0300\u0301\u0302b",
    "\u1100\u1161\u11a8", "x\u2019s x's x'S", "end of text",
]


def random_texts(seed, count):
    """Mixtures of scripts; characters that Unicode 14 does not know are left out."""
    rng = random.Random(seed)
    ranges = [(0x20, 0x7e), (0x20, 0x7e), (0xa0, 0x24f), (0x370, 0x3ff), (0x400, 0x4ff),
              (0x5d0, 0x5ea), (0x900, 0x97f), (0x2000, 0x206f), (0x3040, 0x30ff),
              (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0x1f300, 0x1f64f), (0x300, 0x33f)]
    words = ["the", " the", " pool", "stale", "\n", "  ", "12", "<|stop|>", "<call>", "'s", "er"]
    for _ in range(count):
        text = ""
        for _ in range(rng.randrange(1, 14)):
            if rng.random() < 0.4:
                text += rng.choice(words)
            else:
                character = chr(rng.randint(*rng.choice(ranges)))
                text += character if unicodedata.category(character) != "Cn" else "?"
        yield text


def added(content, special):
    return tokenizers.AddedToken(content, special=special, normalized=False)


ADDED = [added("<|stop|>", True), added("<|begin|>", True), added("<call>", False),
         added("</call>", False)]


def train(normalizer, pre_tokenizer, alphabet, size, **model):
    made = tokenizers.Tokenizer(models.BPE(**model))
    if normalizer is not None:
        made.normalizer = normalizer
    made.pre_tokenizer = pre_tokenizer
    special = ["<unk>", "<s>", "</s>"] if "unk_token" in model else []
    if model.get("byte_fallback"):
        special += [f"<0x{byte:02X}>" for byte in range(256)]
    made.train_from_iterator(CORPUS.strip("\n").split("\n"), trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, initial_alphabet=alphabet, special_tokens=special,
        show_progress=False))
    return made


def byte_level(size, pre_tokenizer, normalizer=None, **model):
    made = train(normalizer, pre_tokenizer, pre_tokenizers.ByteLevel.alphabet(), size, **model)
    made.decoder = decoders.ByteLevel()
    made.add_tokens(ADDED)
    return made


def split(pattern):
    return pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")


def make_nfc():
    """Byte level as Qwen's family has it: NFC, one expression, digits one by one."""
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
               r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    return byte_level(440, pre_tokenizers.Sequence(
        [split(pattern), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
        normalizers.NFC())


def make_digits():
    """Byte level as Llama 3's family has it: no normalizer, up to three digits, whole words
    first."""
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
               r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    return byte_level(400, pre_tokenizers.Sequence(
        [split(pattern), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
        ignore_merges=True)


def make_prefix_space():
    """Byte level as GPT-2's and SmolLM2's families have it: the expression inside ByteLevel, a
    space in front, digits apart."""
    return byte_level(380, pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True),
         pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True)]))


def character_level(size, scheme, byte_fallback):
    made = train(None, pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme=scheme), [], size,
                 byte_fallback=byte_fallback, fuse_unk=True, unk_token="<unk>")
    made.add_tokens(ADDED)
    # Byte tokens belong to the model, not to the added tokens: their text is no token.
    file = json.loads(made.to_str())
    file["added_tokens"] = [token for token in file["added_tokens"]
                            if not token["content"].startswith("<0x")]
    return tokenizers.Tokenizer.from_str(json.dumps(file))


def make_sentencepiece():
    """Characters with byte fallback as Llama 2 has them: the space is a letter."""
    made = character_level(560, "always", True)
    made.pre_tokenizer = None
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
    made.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(),
                                      decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return made


def make_metaspace():
    """Characters without byte fallback: words cut by Metaspace, compatible forms composed, the
    rest unknown."""
    made = character_level(330, "first", False)
    made.normalizer = normalizers.NFKC()
    made.decoder = decoders.Metaspace(replacement=MARK, prepend_scheme="first")
    return made


def encode_case(made, text):
    ids = made.encode(text, add_special_tokens=False).ids
    return {"text": text, **decode_case(made, ids)}


def decode_case(made, ids):
    return {"ids": ids, "decoded": made.decode(ids, skip_special_tokens=False),
            "decoded_skip_special": made.decode(ids, skip_special_tokens=True)}


def stream_part(made, ids, skip):
    stream = decoders.DecodeStream(skip_special_tokens=skip)
    chunks = [stream.step(made, i) for i in ids]
    full = made.decode(ids, skip_special_tokens=skip)
    emitted = "".join(chunk or "" for chunk in chunks)
    rest = full[len(emitted):] if full.startswith(emitted) else None
    return {"chunks": chunks, "remainder": rest, "full": full}


def stream_case(made, ids):
    return {"ids": ids, "keep_special": stream_part(made, ids, False),
            "skip_special": stream_part(made, ids, True)}


def random_ids(made, seed, count):
    rng = random.Random(seed)
    size = made.get_vocab_size()
    for _ in range(count):
        yield [rng.randrange(size) if rng.random() < 0.97 else size + rng.randrange(5)
               for _ in range(rng.randrange(1, 12))]


def compact(made):
    """tokenizer.json without its indentation."""
    return json.dumps(json.loads(made.to_str()), ensure_ascii=True, separators=(",", ":")) + "\n"


MAKERS = {"nfc": make_nfc, "digits": make_digits, "prefix_space": make_prefix_space,
          "sentencepiece": make_sentencepiece, "metaspace": make_metaspace}

# The built-in models' character tokenizers: texts of their own alphabets.
TINY_TEXTS = {
    "tiny": ["", "1", "12+34=46", "((7-3))*2=", "0123456789"],
    "tiny-retool": ["", "1", "12+34=46", "0123456789"],
}


def known(made, text):
    """The characters of the text that the vocabulary has."""
    vocabulary = made.get_vocab()
    return "".join(character for character in text if character in vocabulary)


def write(folder, root):
    for seed, (name, make) in enumerate(MAKERS.items(), 1):
        made = make()
        target = folder / "tokenizers" / name
        target.mkdir(parents=True, exist_ok=True)
        (target / "tokenizer.json").write_text(compact(made), encoding="ascii")
        texts = TEXTS + list(random_texts(seed, 18))
        cases = [encode_case(made, text) for text in texts]
        decodes = [decode_case(made, ids) for ids in random_ids(made, 10 + seed, 18)]
        streams = []
        # How long a run of byte tokens is held back is our own choice (StreamDecoder).
        if name not in ("sentencepiece", "metaspace"):
            rng = random.Random(20 + seed)
            chosen = [case["ids"] for case in rng.sample(cases, 20) if case["ids"]]
            streams = [stream_case(made, ids) for ids in chosen]
        golden_files.write_cases(
            target / "cases.json",
            f"{make.__doc__} ids = encode(text), decoded = decode(ids) with and without special "
            "tokens; stream_cases: what a stream decoder hands out after each id.",
            ["tokenizers"], cases=cases, decode_cases=decodes, stream_cases=streams)
    for name, texts in TINY_TEXTS.items():
        made = tokenizers.Tokenizer.from_file(str(root / "models" / name / "tokenizer.json"))
        texts = [known(made, text) for text in texts]
        alphabet = sorted(token for token in made.get_vocab() if len(token) == 1)
        rng = random.Random(name)
        texts += ["".join(rng.choices(alphabet, k=rng.randrange(1, 30))) for _ in range(12)]
        golden_files.write_cases(
            folder / "tokenizers" / name / "cases.json",
            f"The tokenizer of models/{name}.", ["tokenizers"],
            cases=[encode_case(made, text) for text in texts],
            decode_cases=[decode_case(made, ids) for ids in random_ids(made, 40, 8)])
