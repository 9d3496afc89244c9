"""The terms of policy losses, their reductions and corrections: docs/losses.md in torch.

A term is the loss of each token, a tensor of the mask's shape. What stands at masked positions
is dropped by `reduce` before it is summed, so that it has no gradient either.
"""

import torch

F64 = torch.float64
REDUCTIONS = ("token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean",
              "seq-mean-token-sum-norm")


def reduce(terms, mask, mode, weights=None, num_tokens=None, num_rows=None, scale=1.0):
    if weights is not None:
        terms = terms * weights
    terms = torch.where(mask > 0, terms, 0.0)
    lengths = mask.sum(1)
    tokens = num_tokens or int(mask.sum())
    rows = num_rows or int((lengths > 0).sum())
    sums = terms.sum(1)
    if mode == "token-mean":
        return scale * terms.sum() / tokens
    if mode == "token-sum":
        return terms.sum()
    if mode == "seq-mean-token-sum":
        return scale * sums.sum() / rows
    if mode == "seq-mean-token-mean":
        return scale * (sums / lengths.clamp(min=1)).sum() / rows
    return scale * sums.sum() / rows / mask.shape[1]


def masked_mean(values, mask):
    return values[mask > 0].to(F64).mean().item()


def ppo(logprobs, old, advantages, low, high, dual=None, bound=20.0):
    ratio = torch.clamp(logprobs - old, -bound, bound).exp()
    worse = torch.maximum(-advantages * ratio, -advantages * ratio.clamp(1 - low, 1 + high))
    if dual is None:
        return worse
    return torch.where(advantages < 0, torch.minimum(worse, -advantages * dual), worse)


def ppo_metrics(logprobs, old, advantages, mask, low, high, dual):
    ratio = (logprobs - old).exp()
    plain = -advantages * ratio
    clipped = -advantages * ratio.clamp(1 - low, 1 + high)
    worse = torch.maximum(plain, clipped)
    return {"pg_clipfrac": masked_mean(clipped > plain, mask),
            "pg_clipfrac_lower": masked_mean((worse > -advantages * dual) & (advantages < 0), mask),
            "ppo_kl": masked_mean(old - logprobs, mask)}


def row_mean(values, mask):
    """Of each row over its policy tokens, as a column."""
    kept = torch.where(mask > 0, values, 0.0)
    return (kept.sum(1) / mask.sum(1).clamp(min=1))[:, None]


def gspo(low, high):
    def terms(lp, b):
        sequence = row_mean(lp - b.old, b.mask).detach().clamp(max=10.0)
        ratio = (sequence + lp - lp.detach()).exp()
        return torch.maximum(-b.advantages * ratio, -b.advantages * ratio.clamp(1 - low, 1 + high))
    return terms


def cispo(low, high):
    def terms(lp, b):
        weight = (lp - b.old).exp().clamp(1 - low, 1 + high).detach()
        return -weight * b.advantages * lp
    return terms


def geometric_mean(low, high):
    def terms(lp, b):
        sign = torch.sign(b.advantages)
        d = lp - b.old
        clipped = torch.minimum(sign * d, sign * d.clamp(-low, high)) * sign
        loss = -row_mean(b.advantages, b.mask) * row_mean(clipped, b.mask).exp()
        # The same for all tokens of a row: a mean over tokens gives the row's loss.
        return loss.expand_as(lp)
    return terms


def sapo(positive, negative):
    def terms(lp, b):
        tau = torch.where(b.advantages > 0, positive, negative).to(F64)
        return -b.advantages * 4 / tau * torch.sigmoid(tau * ((lp - b.old).exp() - 1))
    return terms


def covariances(lp, b):
    kept = b.mask > 0
    advantages = b.advantages - b.advantages[kept].mean()
    return advantages * (lp - lp[kept].mean())


def clip_cov(low, high, cov_low, cov_high):
    """With a share of 1 every candidate is left out, so chance plays no part."""
    def terms(lp, b):
        ratio = (lp - b.old).exp()
        plain = -b.advantages * ratio
        clipped = -b.advantages * ratio.clamp(1 - low, 1 + high)
        cov = covariances(lp.detach(), b)
        candidate = (cov > cov_low) & (cov < cov_high) & ~(clipped > plain)
        return torch.where(candidate, 0.0, torch.maximum(plain, clipped))
    return terms


def kl_cov(share, coefficient):
    def terms(lp, b):
        kept = b.mask > 0
        cov = torch.where(kept, covariances(lp.detach(), b), -torch.inf)
        count = max(1, int(int(kept.sum()) * share))
        top = torch.zeros(lp.numel(), dtype=torch.bool)
        top[torch.topk(cov.flatten(), count).indices] = True
        d = lp - b.old
        penalty = torch.where(top.view_as(lp), coefficient * d.abs(), 0.0)
        return -b.advantages * d.exp() + penalty
    return terms


def dppo(kind, low, high, cap):
    def terms(lp, b):
        p, q = lp.detach().exp(), b.old.exp()
        if kind == "tv":
            inside = torch.where(b.advantages > 0, p - q <= high, p - q >= -low)
        else:
            kl = q * (b.old - lp.detach()) + (1 - q) * torch.log((1 - q + 1e-8) / (1 - p + 1e-8))
            inside = torch.where(b.advantages > 0, (kl <= high) | (p <= q), (kl <= low) | (p >= q))
        weight = torch.where(inside, (lp - b.old).exp().clamp(max=cap), 0.0).detach()
        return -weight * b.advantages * lp
    return terms


def dro(beta):
    return lambda lp, b: -(b.advantages * lp - beta / 2 * (lp - b.old) ** 2)


def reinforce():
    return lambda lp, b: -b.advantages * lp


def bypass(kind, cap):
    """Weights from the trained policy: REINFORCE takes them, the clipped ratio does not."""
    def terms(lp, b):
        if kind == "ppo_clip":
            return ppo(lp, b.old, b.advantages, 0.2, 0.28, 10.0)
        return -(lp - b.old).exp().clamp(max=cap).detach() * b.advantages * lp
    return terms


def clips(low, high):
    return {"clip_ratio_low": low, "clip_ratio_high": high}


def bypass_config(kind):
    return {**clips(0.2, 0.28), "clip_ratio_c": 10.0, "rollout_correction": {
        "loss_type": kind, "rollout_is": "token", "rollout_is_threshold": 1.5, "rollout_rs": None,
        "rollout_rs_threshold": None}}


# name -> (verl's name, its settings, reduction, terms)
VARIANTS = {
    "gspo": ("gspo", clips(3e-4, 4e-4), "seq-mean-token-mean", gspo(3e-4, 4e-4)),
    "gspo_wide": ("gspo", clips(0.2, 0.5), "seq-mean-token-mean", gspo(0.2, 0.5)),
    "cispo": ("cispo", clips(10.0, 0.2), "token-mean", cispo(10.0, 0.2)),
    "cispo_low": ("cispo", clips(0.3, 0.5), "seq-mean-token-sum", cispo(0.3, 0.5)),
    "geometric_mean": ("geo_mean", clips(0.4, 0.4), "seq-mean-token-mean", geometric_mean(0.4, 0.4)),
    "sapo": ("sapo", {"tau_pos": 1.0, "tau_neg": 1.05}, "seq-mean-token-mean", sapo(1.0, 1.05)),
    "clip_cov": ("clip_cov", {**clips(0.2, 0.28), "clip_cov_ratio": 1.0, "clip_cov_lb": 0.2,
                              "clip_cov_ub": 5.0}, "token-mean", clip_cov(0.2, 0.28, 0.2, 5.0)),
    "kl_cov": ("kl_cov", {"kl_cov_ratio": 0.2, "ppo_kl_coef": 0.5}, "token-mean", kl_cov(0.2, 0.5)),
    "dppo_tv": ("dppo_tv", {**clips(0.1, 0.15), "clip_ratio_c": 2.0}, "token-mean",
                dppo("tv", 0.1, 0.15, 2.0)),
    "dppo_kl": ("dppo_kl", {**clips(0.02, 0.05), "clip_ratio_c": 2.0}, "token-mean",
                dppo("kl", 0.02, 0.05, 2.0)),
    "dro": ("dro", {"dro_beta": 0.3}, "token-mean", dro(0.3)),
    "gpg": ("gpg", {}, "token-mean", reinforce()),
    "reinforce": ("reinforce", {}, "seq-mean-token-sum", reinforce()),
    "bypass_clip": ("bypass_mode", bypass_config("ppo_clip"), "token-mean", bypass("ppo_clip", 1.5)),
    "bypass_reinforce": ("bypass_mode", bypass_config("reinforce"), "seq-mean-token-sum",
                         bypass("reinforce", 1.5)),
}


def behavior(level="token", action="mask", metric="ratio", agg="mean", upper=5.0, lower=None):
    return {"level": level, "action": action, "metric": metric, "agg": agg, "upper": upper,
            "lower": lower}


def ppo_config(rejection, low=0.2, high=None, dual=None, **more):
    return {"part": "ppo", "eps_clip": low, "eps_clip_higher": high, "c_clip": dual,
            "rejection_sampling": rejection, **more}


DECOUPLED = {
    "no_weights": ppo_config(None),
    "default": ppo_config(behavior()),
    "dual_clip": ppo_config(behavior(upper=1.4, lower=0.6), 0.2, 0.3, 1.5),
    "clamp": ppo_config(behavior(action="clamp", upper=1.2, lower=0.8)),
    "k2": ppo_config(behavior(metric="kl_k2", upper=0.1)),
    "k3": ppo_config(behavior(metric="kl_k3", upper=0.05)),
    "sequence_sum": ppo_config(behavior(level="sequence", agg="sum", upper=1.5)),
    "sequence_max": ppo_config(behavior(level="sequence", metric="kl_k2", agg="max", upper=0.3)),
    "cispo": {"part": "cispo", "eps_clip": 1.0, "eps_clip_higher": 0.5,
              "rejection_sampling": behavior(upper=1.5)},
    "sapo": {"part": "sapo", "tau_pos": 1.0, "tau_neg": 1.05},
}


def measure_of(metric, d):
    return {"ratio": d.exp(), "kl_k1": d, "kl_k2": d * d / 2,
            "kl_k3": (-d).exp() - 1 + d}[metric]


def gather(values, mask, agg):
    """Of each row over its policy tokens, as a column."""
    kept = mask > 0
    if agg == "max":
        return torch.where(kept, values, -torch.inf).max(1, keepdim=True).values
    sums = torch.where(kept, values, 0.0).sum(1, keepdim=True)
    return sums / mask.sum(1, keepdim=True).clamp(min=1) if agg == "mean" else sums


def behavior_weights(b, config):
    """Weight of each token and whether it stays."""
    d = b.prox - b.old
    kept = b.mask > 0
    if config["level"] == "token":
        weight, measure = d.exp(), measure_of(config["metric"], d)
    elif config["metric"] == "ratio":
        measure = gather(d, b.mask, config["agg"]).exp().expand_as(d)
        weight = gather(d, b.mask, "mean").exp().expand_as(d)
    else:
        measure = gather(measure_of(config["metric"], d), b.mask, config["agg"]).expand_as(d)
        weight = d.exp()
    inside = measure <= config["upper"]
    if config["lower"] is not None:
        inside &= measure >= config["lower"]
    if config["action"] == "clamp":
        weight = weight.clamp(config["lower"] or 0.0, config["upper"])
        filtered = kept & ~inside
    else:
        filtered = kept & ~inside
        kept = kept & inside
    share = (filtered.sum() / b.mask.sum()).item()
    return torch.where(kept, weight, 0.0), kept.to(torch.int64), share


def decoupled(b, config, slope):
    rejection = config.get("rejection_sampling")
    tokens = int(b.mask.sum())
    weight, kept, more = torch.ones_like(b.old), b.mask, {}
    if rejection is not None:
        weight, kept, share = behavior_weights(b, rejection)
        more = {"behave_imp_weight": weight.tolist(), "behave_mask": kept.tolist(),
                "filtered_fraction": share}
    part = config["part"]

    def loss(lp):
        if part == "ppo":
            high = config["eps_clip_higher"] or config["eps_clip"]
            terms = ppo(lp, b.prox, b.advantages, config["eps_clip"], high, config["c_clip"],
                        float("inf"))
        elif part == "cispo":
            ratio = (lp - b.prox).exp().clamp(1 - config["eps_clip"], 1 + config["eps_clip_higher"])
            terms = -ratio.detach() * b.advantages * lp
        else:
            terms = sapo(config["tau_pos"], config["tau_neg"])(lp, b)
        return reduce(terms * weight, kept, "token-mean", num_tokens=tokens)

    return {**slope(b, loss), **more}


def m2po_paper(b, budget, slope):
    """Trust-region tokens leave, the largest first, until their mean is within the budget."""
    d = b.new - b.old
    trust = (b.mask > 0) & (((b.advantages > 0) & (d > 0)) | ((b.advantages < 0) & (d < 0)))
    squares = (d * d)[trust]
    ordered = squares.sort(descending=True).values
    dropped = 0
    while dropped < len(ordered) and ordered[dropped:].mean() > budget:
        dropped += 1
    limit = ordered[dropped - 1] if dropped else torch.inf
    kept = (b.mask > 0) & ~(trust & (d * d >= limit))
    assert int(b.mask.sum() - kept.sum()) == dropped, "a tie at the limit: choose another seed"
    rest = ordered[dropped:]
    return {"kept_mask": kept.to(torch.int64).tolist(), "trust_region_tokens": len(ordered),
            "M2_before": squares.mean().item() if len(squares) else 0.0,
            "M2_after": rest.mean().item() if len(rest) else 0.0, "num_masked": dropped,
            **slope(b, lambda lp: reduce(-b.advantages * (lp - b.old).exp(),
                                         kept.to(torch.int64), "token-mean",
                                         num_tokens=int(b.mask.sum())))}


def m2po_official(b, budget, slope):
    """Ratio bounds e^-tau and e^tau: tau is the largest distance in the data at which the mean
    of the capped squares is within the budget."""
    d = b.new - b.old
    trust = (b.mask > 0) & (((b.advantages > 0) & (d > 0)) | ((b.advantages < 0) & (d < 0)))
    squares = (d * d)[trust]
    fitting = [cap for cap in squares if torch.minimum(squares, cap).mean() <= budget]
    tau = max(fitting).sqrt()
    # The bounds are published in float32; without need they are 0 and 1e5.
    lower, upper = (sign * tau.to(torch.float32) for sign in (-1, 1))
    lower, upper = lower.exp().item(), upper.exp().item()
    if squares.mean() <= budget:
        lower, upper = 0.0, 1e5
    ratio = d.exp()
    plain, clipped = -b.advantages * ratio, -b.advantages * ratio.clamp(lower, upper)
    return {"tau": tau.item() if lower > 0 else None, "M2": squares.mean().item(),
            "M2_after": torch.minimum(squares, tau * tau).mean().item(),
            "trust_region_tokens": int(trust.sum()), "ratio_lower_bound": lower,
            "ratio_upper_bound": upper, "clip_low": 1 - lower, "clip_high": upper - 1,
            "pg_clipfrac": masked_mean(clipped > plain, b.mask),
            "ppo_kl": masked_mean(-d, b.mask),
            **slope(b, lambda lp: reduce(
                ppo(lp, b.old, b.advantages, 1 - lower, upper - 1, None, float("inf")), b.mask,
                "token-mean"))}


def m2po_areal(b, budget, slope):
    """All tokens, by the distance of the proximal policy; then decoupled PPO on the rest."""
    d2 = torch.where(b.mask > 0, (b.old - b.prox) ** 2, -1.0)
    ordered = d2[b.mask > 0].sort(descending=True).values
    dropped = 0
    while dropped + 1 < len(ordered) and not ordered[dropped:].mean() < budget:
        dropped += 1
    limit = ordered[dropped - 1] if dropped else torch.inf
    kept = ((b.mask > 0) & (d2 < limit)).to(torch.int64)
    assert int(b.mask.sum() - kept.sum()) == dropped, "a tie at the limit: choose another seed"
    weight = (b.prox - b.old).exp()
    inside = kept * (weight <= 5.0)
    return {"kept_mask": kept.tolist(),
            **slope(b, lambda lp: reduce(
                ppo(lp, b.prox, b.advantages, 0.2, 0.2, None, float("inf")) * weight, inside,
                "token-mean", num_tokens=int(kept.sum())))}


def importance(b, config):
    d = b.new - b.old
    kept = b.mask > 0
    by_row = config["rollout_is"] == "sequence"
    if by_row:
        d = torch.where(kept, d, 0.0).sum(1, keepdim=True).expand_as(d)
    raw = d.clamp(-20, 20).exp()
    bounds = [float(part) for part in str(config["rollout_is_threshold"]).split("_")]
    if len(bounds) == 1:
        weight = raw.clamp(max=bounds[0])
    else:
        weight = torch.where((raw >= bounds[0]) & (raw <= bounds[1]), raw, 0.0)
    weight = torch.where(kept, weight, 0.0)
    if config.get("rollout_is_batch_normalize"):
        weight = weight / (weight[:, 0] if by_row else weight[kept]).mean()
    return weight


def rejected(b, name, bounds):
    level, kind = name.rsplit("_", 1)
    d = (b.new - b.old).clamp(-20, 20)
    measure = {"k1": -d, "k2": d * d / 2, "k3": d.exp() - 1 - d}[kind]
    if level != "token":
        measure = gather(measure, b.mask, level.removeprefix("seq_")).expand_as(d)
    if kind != "k1":
        return measure > bounds[-1]
    upper = bounds[-1]
    lower = bounds[0] if len(bounds) == 2 else 1 / upper
    logs = torch.log(torch.tensor([lower, upper], dtype=F64))
    return (measure < logs[0]) | (measure > logs[1])


def correct(b, config):
    """Weights, the mask that is left and the metrics of the mismatch."""
    kept = b.mask > 0
    d = (b.new - b.old)[kept]
    metrics = {"rollout_corr/kl": (-d).mean().item(),
               "rollout_corr/k3_kl": (d.exp() - 1 - d).mean().item(),
               "rollout_corr/chi2_token": ((2 * d).exp().mean() - 1).item()}
    left = kept.clone()
    if config.get("rollout_rs"):
        names = config["rollout_rs"].split(",")
        bounds = str(config["rollout_rs_threshold"]).split(",")
        for name, bound in zip(names, bounds):
            out = rejected(b, name, [float(part) for part in bound.split("_")])
            left &= ~out
            metrics[f"rollout_corr/rollout_rs_{name}_masked_fraction"] = masked_mean(out, b.mask)
        metrics["rollout_corr/rollout_rs_masked_fraction"] = masked_mean(~left, b.mask)
    expected = {"modified_response_mask": left.to(torch.int64).tolist(), "metrics": metrics}
    if config.get("rollout_is"):
        expected["rollout_is_weights"] = importance(b, config).tolist()
    return expected
