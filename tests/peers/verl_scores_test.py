"""Responses that span weight versions: their log-probabilities and prefix scores are those of the
model that verl trains, computed by transformers from the weights of each version."""

import asyncio
import os
import pathlib
import sys
import tempfile
import unittest

import verl_process

import pace_process

NUM_VERSIONS, NUM_CLIENTS, NUM_TOKENS = 4, 4, 240
MIN_TOKENS, MAX_TOKENS = 16, 100
PROMPT = [6, 13, 7, 16]
SHARE = 0.1
TOLERANCE = 2e-5


def setUpModule():
    folder = pathlib.Path(unittest.enterModuleContext(tempfile.TemporaryDirectory()))
    verl_process.unpack_package(folder / "package")
    verl_process.make_assets(folder / "assets")
    sys.path.insert(0, str(folder / "package"))
    globals()["FOLDER"] = folder


def make_versions():
    """The model under each version: the one before with noise, as an update would move it."""
    import safetensors.torch
    import torch
    import transformers

    models = []
    generator = torch.Generator().manual_seed(3)
    for version in range(NUM_VERSIONS):
        model = transformers.AutoModelForCausalLM.from_pretrained(
            FOLDER / "assets/model", dtype=torch.float32)
        if models:
            with torch.no_grad():
                for mine, last in zip(model.parameters(), models[-1].parameters()):
                    mine.copy_(last + 0.01 * torch.randn(mine.shape, generator=generator))
        folder = FOLDER / f"version{version}"
        folder.mkdir()
        safetensors.torch.save_file({name: tensor.clone().contiguous()
                                     for name, tensor in model.state_dict().items()},
                                    folder / "model.safetensors")
        models.append(model)
    return models


def log_probs_of(model, tokens):
    """Of every token after the first."""
    import torch

    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0, :-1]
    logs = torch.log_softmax(logits.double(), dim=-1)
    return logs.gather(1, torch.tensor(tokens[1:])[:, None])[:, 0].tolist()


async def respond(engine, number):
    """As PaceClient does it. Returns the attempts, the recorded log-probabilities and, for each
    resubmission that was scored, its version and how many tokens there were."""
    from pace.verl.attempts import Attempts

    attempts, recorded, scored, count = Attempts(MIN_TOKENS, MAX_TOKENS), [], [], 0
    attempts.begin_turn(PROMPT)
    while count < NUM_TOKENS:
        params = {"max_tokens": NUM_TOKENS - count, "ignore_eos": True, "logprobs": 0,
                  "temperature": 1.0}
        wants = attempts.wants_score
        if wants:
            params["prompt_logprobs"] = 0
        answer = await engine.generate(f"{number}-{count}", list(attempts.context), params)
        if wants and answer.prompt_logprobs is not None:
            scored.append((answer.step, count))
        count += len(answer.token_ids)
        attempts.add(answer.step, answer.token_ids, answer.log_probs, answer.prompt_logprobs,
                     answer.finish_reason == "abort" and count < NUM_TOKENS)
        recorded += answer.log_probs
    return attempts, recorded, scored


async def generate():
    from pace.verl.engine_process import EngineProcess

    # Slowed down, so that a response takes as long as several syncs.
    os.environ.update(PACE_BINARY_DIR=str(pace_process.BINARY.parent), PACE_SLOW_SHARE=str(SHARE))
    engine = EngineProcess([str(pathlib.Path(__file__).with_name("slow_pace.py")), "serve",
                            str(FOLDER / "assets/model"), "engine.threads=1"])
    await engine.start()

    async def sync(version):
        await engine.pause()
        await engine.load(str(FOLDER / f"version{version}"), version)
        await engine.resume()

    await sync(0)
    clients = [asyncio.create_task(respond(engine, n)) for n in range(NUM_CLIENTS)]
    for version in range(1, NUM_VERSIONS):
        await asyncio.sleep(0.1)
        await sync(version)
    done = await asyncio.wait_for(asyncio.gather(*clients), 300)
    await engine.stop()
    return done


class VerlScoresTest(unittest.TestCase):
    def test_scores_and_log_probs_are_those_of_the_actor(self):
        models = make_versions()
        responses = asyncio.run(generate())
        largest, largest_score, num_scores = 0.0, 0.0, 0
        for attempts, recorded, scored in responses:
            tokens = attempts.context
            under = [log_probs_of(model, tokens)[len(PROMPT) - 1:] for model in models]
            at = 0
            for version, count in attempts.segments:
                for i in range(at, at + count):
                    largest = max(largest, abs(recorded[i] - under[version][i]))
                at += count
            self.assertEqual(at, NUM_TOKENS)
            if not scored:
                continue
            version, count = scored[-1]
            wanted = [abs(under[version][i] - recorded[i]) for i in range(min(count, MAX_TOKENS))]
            largest_score = max(largest_score, abs(attempts.prefix_score - sum(wanted) / len(wanted)))
            self.assertGreater(attempts.prefix_score, 100 * TOLERANCE)    # the policy did move
            num_scores += 1
        print(f"\n{NUM_CLIENTS} responses, segments {[len(r[0].segments) for r in responses]}, "
              f"{num_scores} scored: log-probabilities within {largest:.1e}, scores within "
              f"{largest_score:.1e}")
        self.assertGreater(num_scores, 0)
        self.assertLess(largest, TOLERANCE)
        self.assertLess(largest_score, TOLERANCE)


if __name__ == "__main__":
    unittest.main()
