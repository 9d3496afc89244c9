"""Advantages, losses, corrections and rewards in torch float64.

The formulas are those of docs/losses.md and of the headers of src/train, written down a second
time: gradients come from autograd, AdamW and the gradient norm from torch itself.
"""

import math

import torch

import golden_files
import make_losses

F64 = torch.float64


def numbers(tensor):
    return tensor.detach().tolist()


class Batch:
    """Rows of one length with a mask; what stands at masked positions must not matter."""

    def __init__(self, seed, rows=4, width=5, spread=0.4):
        generator = torch.Generator().manual_seed(seed)

        def draw(low, high, *shape):
            # Multiples of 1/64: short texts, exact in every precision.
            return torch.randint(int(low * 64), int(high * 64), shape, generator=generator) / 64.0

        self.old = -draw(0.05, 2.5, rows, width).to(F64) - 1 / 64
        self.new = torch.clamp(self.old + draw(-spread, spread, rows, width).to(F64), max=-1 / 64)
        self.prox = torch.clamp(self.old + draw(-spread, spread, rows, width).to(F64), max=-1 / 64)
        self.advantages = draw(-1.5, 1.5, rows, width).to(F64)
        # Rows of every length, one with a hole as tool output makes it.
        lengths = [max(1, width - (seed + row) % width) for row in range(rows)]
        self.mask = torch.tensor([[int(t < n) for t in range(width)] for n in lengths])
        self.mask[0, width // 2] = 0
        self.rewards = torch.tensor([1.0, -1.0, 0.5, 0.0, 1.0, -0.25][:rows], dtype=F64)
        self.groups = [7, 3, 7, 3, 7, 3][:rows]

    def empty_row(self, row):
        self.mask[row] = 0
        return self

    def poisoned(self, values):
        """The same with NaN where the mask is 0."""
        return numbers(torch.where(self.mask > 0, values, torch.nan))

    def inputs(self, **more):
        return {"old_log_prob": numbers(self.old), "log_prob": numbers(self.new),
                "advantages": numbers(self.advantages), "response_mask": numbers(self.mask), **more}


def case(name, inputs, config, expected):
    return {"name": name, "inputs": inputs, "config": config, "expected": expected}


def slope(batch, loss_of):
    """The loss and its gradient in the log-probs."""
    logprobs = batch.new.clone().requires_grad_()
    loss = loss_of(logprobs)
    (gradient,) = torch.autograd.grad(loss, logprobs)
    return {"loss": loss.item(), "grad_log_prob": numbers(gradient)}


def vanilla():
    settings = [(0.2, 0.2, 3.0), (0.2, 0.28, 10.0), (0.1, 0.5, 1.5)]
    for seed, (low, high, dual) in enumerate(settings, 1):
        for weighted in (False, True):
            batch = Batch(seed, spread=1.2)
            if seed == 2:
                batch.empty_row(3)
            weights = torch.rand((4, 5), generator=torch.Generator().manual_seed(seed)) * 2
            weights = (weights.to(F64) * 64).round() / 64 if weighted else None
            config = {"clip_ratio_low": low, "clip_ratio_high": high, "clip_ratio_c": dual}
            more = {"rollout_is_weights": numbers(weights)} if weighted else {}
            by_mode = {}
            for mode in make_losses.REDUCTIONS:
                by_mode[mode] = slope(batch, lambda lp, m=mode: make_losses.reduce(
                    make_losses.ppo(lp, batch.old, batch.advantages, low, high, dual),
                    batch.mask, m, weights))
            yield case(f"ppo_{low}_{high}_{dual}_{'weighted' if weighted else 'plain'}",
                       batch.inputs(**more), config,
                       {**make_losses.ppo_metrics(batch.new, batch.old, batch.advantages,
                                                  batch.mask, low, high, dual),
                        "by_loss_agg_mode": by_mode})
    for mode in ("token-mean", "seq-mean-token-mean"):
        batch = Batch(8, spread=0.6)
        inputs = batch.inputs(log_prob=batch.poisoned(batch.new),
                              old_log_prob=batch.poisoned(batch.old),
                              advantages=batch.poisoned(batch.advantages))
        yield case(f"nan_where_masked_{mode}", inputs,
                   {"clip_ratio_low": 0.2, "clip_ratio_high": 0.28, "clip_ratio_c": 10.0},
                   {**make_losses.ppo_metrics(batch.new, batch.old, batch.advantages, batch.mask,
                                              0.2, 0.28, 10.0),
                    "by_loss_agg_mode": {mode: slope(batch, lambda lp, m=mode: make_losses.reduce(
                        make_losses.ppo(lp, batch.old, batch.advantages, 0.2, 0.28, 10.0),
                        batch.mask, m))}})
    batch = Batch(9, spread=0.6)
    config = {"clip_ratio_low": 0.2, "clip_ratio_high": 0.28, "clip_ratio_c": 10.0,
              "global_batch_info": {"dp_size": 2, "batch_num_tokens": 31, "global_batch_size": 9}}
    by_mode = {mode: slope(batch, lambda lp, m=mode: make_losses.reduce(
        make_losses.ppo(lp, batch.old, batch.advantages, 0.2, 0.28, 10.0), batch.mask, m,
        num_tokens=31, num_rows=9, scale=2)) for mode in ("token-mean", "seq-mean-token-sum")}
    yield case("part_of_a_minibatch", batch.inputs(), config,
               {**make_losses.ppo_metrics(batch.new, batch.old, batch.advantages, batch.mask, 0.2,
                                          0.28, 10.0), "by_loss_agg_mode": by_mode})


def variants():
    for name, (algorithm, config, mode, terms) in make_losses.VARIANTS.items():
        for seed, spread in ((11, 0.3), (12, 1.5)):
            batch = Batch(seed, spread=spread)
            if seed == 12:
                batch.empty_row(2)
            rows = 4 if algorithm == "geo_mean" else None
            expected = slope(batch, lambda lp: make_losses.reduce(
                terms(lp, batch), batch.mask, mode, num_rows=rows))
            yield case(f"{name}_{seed}", batch.inputs(),
                       {"algorithm": algorithm, "loss_agg_mode": mode, **config},
                       {**expected, "metrics": {}})


def decoupled():
    for name, config in make_losses.DECOUPLED.items():
        for seed, spread in ((21, 0.3), (22, 1.8)):
            batch = Batch(seed, spread=spread)
            expected = make_losses.decoupled(batch, config, slope)
            yield case(f"{name}_{seed}", batch.inputs(proximal_log_prob=numbers(batch.prox)),
                       config, expected)
    batch = Batch(23)
    generator = torch.Generator().manual_seed(23)
    versions = torch.randint(-1, 9, (4, 5), generator=generator)
    current = 8
    alpha = torch.where((versions >= 0) & (versions < current),
                        (current - 1 - versions) / (current - versions).clamp(min=1), 0.0).to(F64)
    linear = torch.log((1 - alpha) * batch.old.exp() + alpha * batch.new.exp() + 1e-10)
    yield case("proximal_estimates",
               {"old_log_prob": numbers(batch.old), "log_prob": numbers(batch.new),
                "versions": numbers(versions)},
               {"part": "prox_approx", "current_version": current},
               {"loglinear": numbers(batch.old + alpha * (batch.new - batch.old)),
                "linear": numbers(linear), "rollout": numbers(batch.old)})


def m2po():
    for seed, spread, budget in ((31, 0.3, 0.04), (32, 1.0, 0.04), (33, 1.0, 0.3)):
        batch = Batch(seed, spread=spread)
        yield case(f"paper_{seed}", batch.inputs(), {"rule": "paper", "M2_budget": budget},
                   make_losses.m2po_paper(batch, budget, slope))
        yield case(f"official_{seed}", batch.inputs(),
                   {"rule": "official", "M2_budget": budget, "loss_agg_mode": "token-mean"},
                   make_losses.m2po_official(batch, budget, slope))
        config = {"rule": "areal", "m2_threshold": budget, "eps_clip": 0.2,
                  "eps_clip_higher": None, "c_clip": None,
                  "rejection_sampling": {"level": "token", "action": "mask", "metric": "ratio",
                                         "agg": "mean", "upper": 5.0, "lower": None}}
        yield case(f"areal_{seed}", batch.inputs(proximal_log_prob=numbers(batch.prox)), config,
                   make_losses.m2po_areal(batch, budget, slope))


def topr():
    for seed, positive, negative in ((41, 1.0, 1.0), (42, 0.5, 2.0)):
        batch = Batch(seed, spread=1.0)
        weight = torch.where(batch.rewards[:, None] > 0, torch.tensor(positive, dtype=F64),
                             negative * torch.clamp((batch.new - batch.old).exp(), 0, 1))
        terms = -weight * batch.advantages * batch.new
        by_mode = {mode: slope(batch, lambda lp, m=mode: make_losses.reduce(
            -weight * batch.advantages * lp, batch.mask, m, num_rows=4))
            for mode in ("token-mean", "seq-mean-token-sum", "seq-mean-token-mean")}
        yield case(f"topr_{seed}", batch.inputs(scores=numbers(batch.rewards)),
                   {"positive_weight": positive, "negative_weight": negative},
                   {"loss_matrix": numbers(terms), "by_loss_agg_mode": by_mode})


def group_rows(groups, row):
    return [other for other, group in enumerate(groups) if group == groups[row]]


def of_group(rewards, groups, rule):
    return torch.stack([rule(rewards[group_rows(groups, row)],
                             group_rows(groups, row).index(row)) for row in range(len(groups))])


def grpo_rule(values, own, standardize=True):
    mean = values.mean() if len(values) > 1 else torch.tensor(0.0, dtype=F64)
    deviation = values.std() if len(values) > 1 else torch.tensor(1.0, dtype=F64)
    return (values[own] - mean) / (deviation + 1e-6) if standardize else values[own] - mean


def rloo_rule(values, own):
    n = len(values)
    return values[own] if n == 1 else (values[own] - values.mean()) * n / (n - 1)


def best_rule(values, own):
    ordered, order = torch.sort(values, descending=True, stable=True)
    lead = (ordered[0] - ordered[1]) / (values.std() + 1e-6)
    return lead if order[0] == own else torch.zeros((), dtype=F64)


def center_rule(values, own):
    return values[own] - (values.mean() if len(values) > 1 else 0.0)


def standardized(x, mask):
    kept = x[mask > 0]
    return torch.where(mask > 0, (x - kept.mean()) * torch.rsqrt(kept.var() + 1e-8), 0.0)


def returns_of(token_rewards, mask, gamma, cross=True):
    out = torch.zeros_like(token_rewards)
    for row in range(len(mask)):
        running = torch.zeros((), dtype=F64)
        for t in reversed(range(mask.shape[1])):
            if mask[row, t]:
                running = token_rewards[row, t] + gamma * running
                out[row, t] = running
            elif not cross:
                running = torch.zeros((), dtype=F64)
    return out


def gae_of(token_rewards, values, mask, gamma, decay):
    out = torch.zeros_like(token_rewards)
    for row in range(len(mask)):
        following, running = 0.0, 0.0
        for t in reversed(range(mask.shape[1])):
            if mask[row, t]:
                delta = token_rewards[row, t] + gamma * following - values[row, t]
                running = delta + gamma * decay * running
                following = values[row, t]
                out[row, t] = running
    return out


def opo_baselines(rewards, groups, lengths):
    out = []
    for row in range(len(groups)):
        rows = group_rows(groups, row)
        weights = lengths[rows]
        out.append((weights * rewards[rows]).sum() / weights.sum() if len(rows) > 1
                   else torch.zeros((), dtype=F64))
    return torch.stack(out)


def advantages():
    for seed in (51, 52):
        batch = Batch(seed, rows=6)
        if seed == 52:
            batch.groups[5] = 8  # a group of one
        mask, groups = batch.mask, batch.groups
        rewards = torch.zeros_like(batch.old)
        for row in range(6):
            last = int(torch.nonzero(mask[row]).max())
            rewards[row, last] = batch.rewards[row]
        total = rewards.sum(1)
        values = (batch.advantages * 0.5 * 64).round() / 64
        baselines = torch.tensor([0.25, -0.5, 0.0, 1.0, 0.5, -1.0], dtype=F64)
        dense = rewards - (batch.new.abs() * 4).round() / 64
        lengths = mask.sum(1).to(F64)

        def given(name, config, sequence=None, tokens=None, returns=None, token_rewards=None,
                  extra=None, b=batch, r=rewards):
            result = sequence[:, None] * b.mask if tokens is None else tokens
            inputs = {"token_level_rewards": numbers(r if token_rewards is None else token_rewards),
                      "response_mask": numbers(b.mask), "index": b.groups, **(extra or {})}
            return case(f"{name}_{seed}", inputs, config,
                        {"advantages": numbers(result),
                         "returns": numbers(result if returns is None else returns)})

        epsilon = {"epsilon": 1e-6}
        yield given("grpo", {"algorithm": "grpo", "norm_adv_by_std_in_grpo": True, **epsilon},
                    of_group(total, groups, grpo_rule))
        yield given("dr_grpo", {"algorithm": "dr_grpo", "norm_adv_by_std_in_grpo": False, **epsilon},
                    of_group(total, groups, center_rule))
        yield given("rloo", {"algorithm": "rloo"}, of_group(total, groups, rloo_rule))
        centered = of_group(total, groups, center_rule)[:, None] * mask
        baseline = standardized(centered, mask)
        yield given("reinforce_plus_plus_baseline", {"algorithm": "reinforce_plus_plus_baseline"},
                    tokens=baseline)
        for gamma in (1.0, 0.9):
            for cross in (True, False):
                back = returns_of(dense, mask, gamma, cross)
                yield given(f"reinforce_plus_plus_{gamma}_{cross}",
                            {"algorithm": "reinforce_plus_plus" + ("" if cross else "_pre7300"),
                             "gamma": gamma}, tokens=standardized(back, mask), returns=back,
                            token_rewards=dense)
            raw = gae_of(dense, values, mask, gamma, 0.95)
            yield given(f"gae_{gamma}", {"algorithm": "gae", "gamma": gamma, "lam": 0.95},
                        tokens=standardized(raw, mask), returns=(raw + values) * mask,
                        token_rewards=dense, extra={"values": numbers(values)})
        back = returns_of(dense, mask, 1.0)
        yield given("remax", {"algorithm": "remax"}, tokens=(back - baselines[:, None]) * mask,
                    returns=back, token_rewards=dense,
                    extra={"reward_baselines": numbers(baselines)})
        yield given("opo", {"algorithm": "opo"}, total - opo_baselines(total, groups, lengths))
        scale = len(total) / (total != 0).sum()
        yield given("gpg", {"algorithm": "gpg"}, of_group(total, groups, center_rule) * scale)
        if seed == 51:
            yield given("pass_at_k", {"algorithm": "grpo_passk", "norm_adv_by_std_in_grpo": True,
                                      **epsilon}, of_group(total, groups, best_rule))
    equal = Batch(53)
    rewards = torch.full((4, 1), 0.1, dtype=F64)
    yield case("equal_rewards", {"token_level_rewards": numbers(rewards),
                                 "response_mask": [[1]] * 4, "index": [1, 1, 1, 1]},
               {"algorithm": "grpo", "norm_adv_by_std_in_grpo": True, "epsilon": 1e-6},
               {"advantages": [[0.0]] * 4, "returns": [[0.0]] * 4})
    yield case("a_group_of_one_has_no_second",
               {"token_level_rewards": numbers(equal.rewards[:1, None]), "response_mask": [[1]],
                "index": [1]}, {"algorithm": "grpo_passk", "epsilon": 1e-6},
               {"error": "a group needs two members"})


def correction(name, seed, config, spread=0.8, rows=4):
    batch = Batch(seed, rows=rows, spread=spread)
    return case(name, {"old_log_prob": numbers(batch.new), "rollout_log_prob": numbers(batch.old),
                       "response_mask": numbers(batch.mask)}, config,
                make_losses.correct(batch, config))


def corrections():
    seed = 60
    for level in ("token", "sequence"):
        for threshold in (2.0, 1.25, "0.75_1.5"):
            for normalize in (False, True):
                seed += 1
                yield correction(f"weights_{level}_{threshold}_{normalize}", seed, {
                    "rollout_is": level, "rollout_is_threshold": threshold,
                    "rollout_is_batch_normalize": normalize})
    for criterion in ("token_k1", "token_k2", "token_k3", "seq_sum_k1", "seq_sum_k2", "seq_sum_k3",
                      "seq_mean_k1", "seq_mean_k2", "seq_mean_k3", "seq_max_k2", "seq_max_k3"):
        seed += 1
        bound = "0.8_1.4" if criterion.endswith("k1") else "0.06"
        yield correction(f"reject_{criterion}", seed,
                         {"rollout_rs": criterion, "rollout_rs_threshold": bound})
    yield correction("reject_one_bound", 90, {"rollout_rs": "token_k1",
                                              "rollout_rs_threshold": "1.3"})
    yield correction("weights_and_two_criteria", 91, {
        "rollout_is": "token", "rollout_is_threshold": 2.0, "rollout_rs": "token_k1,seq_max_k2",
        "rollout_rs_threshold": "0.7_1.5,0.2"})


def vcpo():
    for seed, rule, base, cap, bounded in ((71, "sqrt", 1.0, 8.0, False), (72, "linear", 0.5, 1.5, True),
                                           (73, "sqrt", 0.7, 1.25, True)):
        batch = Batch(seed, spread=0.7)
        weights = ((batch.new - batch.old) * batch.mask).sum(1).exp()
        capped = weights.clamp(max=cap)

        def ratio(w):
            return ((w.sum() ** 2) / (len(w) * (w ** 2).sum())).item()

        share = min(1.0, ratio(capped if bounded else weights) / base)
        scale = math.sqrt(share) if rule == "sqrt" else share
        yield case(f"learning_rate_{seed}",
                   {"old_log_prob": numbers(batch.new), "rollout_log_prob": numbers(batch.old),
                    "response_mask": numbers(batch.mask)},
                   {"part": "ess_lr", "rollout_is_threshold": cap, "use_clipped": bounded,
                    "scaling_rule": rule, "base_ess_ratio": base, "base_lr": 1e-3},
                   {"rollout_seq_is": numbers(weights), "rollout_seq_is_clipped": numbers(capped),
                    "ess": 4 * ratio(weights), "ess_ratio": ratio(weights),
                    "ess_clipped": 4 * ratio(capped), "ess_ratio_clipped": ratio(capped),
                    "lr_scale": scale, "lr_used": 1e-3 * scale})
    for seed, scope, use_weights, by_length, standardize in (
            (74, "group", True, False, False), (75, "group", False, True, True),
            (76, "minibatch", True, False, False)):
        yield opob(seed, scope, use_weights, by_length, standardize)


def opob(seed, scope, use_weights, by_length, standardize):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return (torch.rand(shape, generator=generator).to(F64) * 64).round() / 32

    groups = [1, 2, 1, 2, 1, 2]
    reward, advantage = draw(6) - 1, draw(6) - 1
    norms, weights, vectors = draw(6) + 0.25, draw(6) + 0.25, draw(6, 3) - 1
    lengths = torch.tensor([3, 5, 2, 8, 4, 1])
    w = norms ** 2 * (weights ** 2 if use_weights else 1) / (lengths ** 2 if by_length else 1)
    sets = {str(g): [i for i in range(6) if groups[i] == g] for g in (1, 2)}
    sets = sets if scope == "group" else {"None": list(range(6))}
    value = reward if scope == "group" else advantage
    baselines, gradient = {}, torch.zeros(3, dtype=F64)
    for key, rows in sets.items():
        b = (w[rows] * value[rows]).sum() / w[rows].sum()
        deviation = value[rows].std(correction=0) if standardize else 1.0
        baselines[key] = b.item()
        gradient += ((value[rows] - b) / deviation) @ vectors[rows]
    return case(f"baseline_{seed}",
                {"group": groups, "reward": numbers(reward), "advantage": numbers(advantage),
                 "response_length": numbers(lengths), "grad_norm": numbers(norms),
                 "seq_is": numbers(weights), "grad_vectors": numbers(vectors)},
                {"part": "opob", "scope": scope, "agg_mode": "mean", "use_is_weights": use_weights,
                 "use_clipped_is_ratios": False, "normalize_by_length": by_length,
                 "norm_by_std": standardize, "rollout_is_threshold": 2.0},
                {"baseline": baselines, "accumulated_gradient": numbers(gradient)})


def kl_penalties():
    logprob = torch.tensor([[-0.5, -1.25, -2.0, -30.0], [-0.125, -3.5, -0.75, -0.5]], dtype=F64)
    reference = torch.tensor([[-0.75, -1.25, -0.5, -0.5], [-3.0, -3.0, -0.5, -31.0]], dtype=F64)
    for name in ("kl", "abs", "mse", "low_var_kl", "k1+", "k3+", "abs+"):
        x = logprob.clone().requires_grad_()
        d = x - reference
        base = name.removesuffix("+")
        log_ratio = torch.clamp(-d, -20, 20)
        value = {"kl": d, "k1": d, "abs": d.abs(), "mse": d * d / 2,
                 "low_var_kl": torch.clamp(log_ratio.exp() - 1 - log_ratio, -10, 10),
                 "k3": torch.clamp(log_ratio.exp() - 1 - log_ratio, -10, 10)}[base]
        (gradient,) = torch.autograd.grad((d * d / 2 if name.endswith("+") else value).sum(), x)
        yield case(f"verl_{name}", {"logprob": numbers(logprob), "ref_logprob": numbers(reference)},
                   {"implementation": "verl", "kl_penalty": name},
                   {"kl": numbers(value), "grad_logprob_of_sum": numbers(gradient)})


def logprob_entropy():
    for seed, tokens, width, vocabulary, temperature in ((81, 3, 4, 7, 1.0), (82, 2, 3, 5, 0.6)):
        generator = torch.Generator().manual_seed(seed)

        def draw(*shape):
            return (torch.randn(shape, generator=generator).to(F64) * 64).round() / 64

        hidden, weight = draw(tokens, width), draw(vocabulary, width)
        up_logprob, up_entropy = draw(tokens), draw(tokens)
        targets = torch.randint(0, vocabulary, (tokens,), generator=generator)
        hidden.requires_grad_()
        weight.requires_grad_()
        scores = torch.log_softmax(hidden @ weight.T / temperature, dim=-1)
        logprob = scores.gather(1, targets[:, None])[:, 0]
        entropy = -(scores.exp() * scores).sum(-1)
        total = (up_logprob * logprob + up_entropy * entropy).sum()
        grad_hidden, grad_weight = torch.autograd.grad(total, (hidden, weight))
        yield case(f"softmax_{seed}",
                   {"hidden": numbers(hidden), "weight": numbers(weight),
                    "targets": numbers(targets), "upstream_grad_logprob": numbers(up_logprob),
                    "upstream_grad_entropy": numbers(up_entropy)}, {"temperature": temperature},
                   {"logprob": numbers(logprob), "entropy": numbers(entropy),
                    "grad_hidden": numbers(grad_hidden), "grad_weight": numbers(grad_weight)})


def adamw():
    for seed, dtype, decay, warmup in ((91, F64, 0.1, 0), (92, torch.float32, 0.0, 2)):
        generator = torch.Generator().manual_seed(seed)

        def draw(*shape):
            return (torch.randn(shape, generator=generator).to(F64) * 64).round() / 64

        start = [draw(2, 3), draw(4)]
        grads = [[draw(2, 3) * s, draw(4) * s] for s in (0.25, 4.0, 0.0, 1.0)]
        params = [p.to(dtype).clone().requires_grad_() for p in start]
        lr, betas, eps, max_norm = 0.01, (0.9, 0.95), 1e-8, 1.0
        optimizer = torch.optim.AdamW(params, lr=lr, betas=betas, eps=eps, weight_decay=decay,
                                      foreach=False)
        steps = []
        for index, gradient in enumerate(grads):
            for p, g in zip(params, gradient):
                p.grad = g.to(dtype).clone()
            norm = torch.nn.utils.clip_grad_norm_(params, max_norm)
            used = lr * min(1.0, index / warmup) if warmup else lr
            optimizer.param_groups[0]["lr"] = used
            optimizer.step()
            state = [optimizer.state[p] for p in params]
            steps.append({"lr": used, "grad_norm_before_clip": norm.item(),
                          "params": [numbers(p) for p in params],
                          "exp_avg": [numbers(s["exp_avg"]) for s in state],
                          "exp_avg_sq": [numbers(s["exp_avg_sq"]) for s in state]})
        yield case(f"adamw_{seed}",
                   {"params": [numbers(p) for p in start],
                    "grads": [[numbers(g) for g in step] for step in grads]},
                   {"lr": lr, "betas": list(betas), "eps": eps, "weight_decay": decay,
                    "num_warmup_steps": warmup, "max_grad_norm": max_norm,
                    "dtype": str(dtype).removeprefix("torch.")}, {"steps": steps})


def reward_shaping():
    for limit, buffer, factor in ((100, 40, 1.0), (64, 64, 0.5), (1000, 10, 2.0)):
        lengths = [0, 1, limit - buffer, limit - buffer + 1, limit - buffer // 2, limit - 1, limit,
                   limit + 3]
        scores = [1.0 if i % 2 else -1.0 for i in range(len(lengths))]
        penalties = [min(-(n - (limit - buffer)) / buffer * factor, 0.0) for n in lengths]
        yield case(f"overlong_{limit}_{buffer}", {"response_length": lengths, "score": scores},
                   {"part": "overlong", "max_resp_len": limit, "overlong_buffer_len": buffer,
                    "penalty_factor": factor},
                   {"overlong_reward": penalties,
                    "reward": [s + p for s, p in zip(scores, penalties)]})
    rows = [("\\boxed{5}", "5", 2, True, "5"), ("\\boxed{4}", "5", 2, False, "4"),
            ("\\boxed{4}", "5", 4, False, "4"), ("no box", "5", 6, False, ""),
            ("\\boxed{ 5}", "5", 10, False, " 5"), ("\\boxed{4}", "5", 30, False, "4"),
            ("\\boxed{5}", "5", 9, True, "5")]
    yield case("retool", {"solution": [r[0] for r in rows], "ground_truth": [r[1] for r in rows],
                          "num_turns": [r[2] for r in rows]}, {"part": "retool"},
               {"results": [{"score": 1.0 if r[3] else min(-0.6, -1 + 0.05 * (r[2] - 2)),
                             "acc": r[3], "pred": r[4]} for r in rows]})


FAMILIES = {"adamw": adamw, "advantages": advantages, "decoupled_ppo": decoupled,
            "kl_penalties": kl_penalties, "logprob_entropy": logprob_entropy, "m2po": m2po,
            "policy_loss_vanilla": vanilla, "policy_loss_variants": variants,
            "reward_shaping": reward_shaping, "rollout_correction": corrections, "topr": topr,
            "vcpo": vcpo}


def write(folder):
    torch.set_num_threads(1)
    for name, cases in FAMILIES.items():
        golden_files.write_cases(
            folder / "numerics" / f"{name}.json",
            "float64 unless a case says dtype; the formulas of docs/losses.md, written a second "
            "time, with autograd.", ["torch"], cases=list(cases()))
