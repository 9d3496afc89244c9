"""A supervised `pace serve` under faults at any moment: killed or stopped while it generates, pauses,
loads weights or resumes. Needs aiohttp, which verl's environment has."""

import asyncio
import itertools
import os
import pathlib
import random
import shutil
import signal
import tempfile
import unittest

import verl_process

import pace_process

NUM_ROUNDS = 8
NUM_CLIENTS, NUM_TOKENS = 6, 400


def setUpModule():
    import sys

    folder = pathlib.Path(unittest.enterModuleContext(tempfile.TemporaryDirectory()))
    verl_process.unpack_package(folder / "package")
    sys.path.insert(0, str(folder / "package"))
    shutil.copytree(verl_process.SOURCE / "models" / "tiny", folder / "weights")
    globals()["FOLDER"] = folder


async def respond(engine, number):
    """One response as the client makes it: prompt plus tokens again after an abort."""
    tokens, versions = [], []
    while len(tokens) < NUM_TOKENS:
        answer = await engine.generate(f"{number}-{len(versions)}", [6, 13, 7, 16] + tokens, {
            "max_tokens": NUM_TOKENS - len(tokens), "ignore_eos": True, "logprobs": 0,
            "temperature": 1.0})
        assert len(answer.token_ids) == len(answer.log_probs)
        tokens += answer.token_ids
        versions.append(answer.step)
    return tokens, versions


async def respond_until(engine, number, event):
    """Responses until one has begun after the event: however fast the engine is, it is busy then."""
    responses, is_last = [], False
    while not is_last:
        is_last = event.is_set()
        responses.append(await respond(engine, f"{number}-{len(responses)}"))
    return responses


async def run(test):
    from pace.verl.engine_process import EngineProcess

    rng, lines = random.Random(7), []
    engine = EngineProcess([str(pace_process.BINARY), "serve",
                            str(verl_process.SOURCE / "models" / "tiny"), "engine.threads=1"],
                           health_seconds=2.0, call_seconds=5.0, log=lines.append)
    await engine.start()
    await engine.pause()
    await engine.load(str(FOLDER / "weights"), 0)
    await engine.resume()
    for step in range(1, NUM_ROUNDS + 1):
        faulted = asyncio.Event()
        clients = [asyncio.create_task(respond_until(engine, f"{step}-{n}", faulted))
                   for n in range(NUM_CLIENTS)]

        async def fault():
            await asyncio.sleep(rng.random() * 0.3)
            os.kill(engine.pid, signal.SIGKILL if step % 2 else signal.SIGSTOP)
            faulted.set()

        async def sync():
            await asyncio.sleep(rng.random() * 0.3)
            await engine.pause()
            await engine.load(str(FOLDER / "weights"), step)
            await engine.resume()

        await asyncio.wait_for(asyncio.gather(fault(), sync()), 120)
        responses = await asyncio.wait_for(asyncio.gather(*clients), 120)
        for tokens, versions in itertools.chain.from_iterable(responses):
            test.assertEqual(len(tokens), NUM_TOKENS)
            known = [version for version in versions if version is not None]
            test.assertEqual(known, sorted(known))
            test.assertLessEqual(set(known), {step - 1, step})
        test.assertEqual(engine.step, step)
    await engine.stop()
    return engine.num_replaced, lines


class VerlEngineTest(unittest.TestCase):
    def test_faults_at_any_moment(self):
        num_replaced, lines = asyncio.run(run(self))
        print(f"\n{num_replaced} servers replaced in {NUM_ROUNDS} rounds")
        self.assertEqual(num_replaced, NUM_ROUNDS, lines)
        self.assertEqual(len(lines), NUM_ROUNDS)

    def test_a_program_that_does_not_start_is_named(self):
        from pace.verl.engine_process import EngineProcess

        async def begin():
            engine = EngineProcess([str(pace_process.BINARY), "serve", "/nowhere"], label="replica 3")
            try:
                await engine.start()
            finally:
                await engine.stop()

        with self.assertRaisesRegex(RuntimeError, "replica 3: .* ended with exit code"):
            asyncio.run(begin())


if __name__ == "__main__":
    unittest.main()
