"""Writes expected.json beside a checkpoint: what transformers computes from it.

The format is that of the reference data; its fields are told in README.md there.
"""

import json
import math

import torch
import transformers

GREEDY_TOKENS = 12


def text_of(dtype):
    return str(dtype).removeprefix("torch.")


def by_checkpoint_name(name, tensor):
    """A parameter of the module in memory as the tensors of a checkpoint."""
    if not name.endswith((".experts.gate_up_proj", ".experts.down_proj")):
        return {name: tensor}
    at, stack = name.rsplit(".", 1)
    parts = {}
    for expert, matrix in enumerate(tensor):
        if stack == "down_proj":
            parts[f"{at}.{expert}.down_proj.weight"] = matrix
        else:
            gate, up = matrix.chunk(2)
            parts[f"{at}.{expert}.gate_proj.weight"] = gate
            parts[f"{at}.{expert}.up_proj.weight"] = up
    return parts


def parameters_of(model):
    found = {}
    for name, parameter in model.named_parameters():
        found.update(by_checkpoint_name(name, parameter.detach()))
    return found


def gradients_of(model, loss):
    model.zero_grad(set_to_none=True)
    loss.backward(retain_graph=True)
    found = {}
    for name, parameter in model.named_parameters():
        grad = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
        found.update(by_checkpoint_name(name, grad))
    return found


class Routers:
    """Records what the routers of a model return."""

    def __init__(self, model):
        self.records = []
        self.hooks = []
        for index, layer in enumerate(model.model.layers):
            if hasattr(layer.mlp, "experts"):
                self.hooks.append(layer.mlp.gate.register_forward_hook(self.recorder(index)))

    def recorder(self, index):
        return lambda module, inputs, outputs: self.records.append((index, *outputs))

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        for hook in self.hooks:
            hook.remove()


def router_fields(records, config):
    layers = []
    margin = math.inf
    all_logits = []
    for layer, logits, weights, experts in records:
        ranked = torch.softmax(logits.float(), -1).sort(-1, descending=True).values
        chosen = config.num_experts_per_tok
        margin = min(margin, (ranked[:, chosen - 1] - ranked[:, chosen]).min().item())
        all_logits.append(logits.detach())
        layers.append({
            "layer": layer,
            "router_logits": logits.tolist(),
            "selected_experts": experts.tolist(),
            "routing_weights": weights.tolist(),
            "tokens_per_expert": experts.flatten().bincount(minlength=logits.shape[1]).tolist(),
        })
    module = transformers.models.qwen3_moe.modeling_qwen3_moe
    aux = module.load_balancing_loss_func(tuple(all_logits), config.num_experts,
                                          config.num_experts_per_tok)
    return {"layers": layers, "min_topk_probability_margin": margin, "aux_loss": aux.item()}


def greedy_fields(model, ids):
    ids = list(ids)
    start = len(ids)
    margin = math.inf
    with torch.no_grad():
        for _ in range(GREEDY_TOKENS):
            last = model(torch.tensor([ids])).logits[0, -1]
            top = last.topk(2)
            margin = min(margin, (top.values[0] - top.values[1]).item())
            ids.append(top.indices[0].item())
    return {"greedy": ids[start:], "greedy_min_top2_margin": margin}


def case_fields(model, name, ids, entries):
    with Routers(model) as routers:
        out = model.model(torch.tensor([ids]))
        records = routers.records
    hidden = out.last_hidden_state[0]
    logits = model.lm_head(hidden).float()
    logprobs = torch.log_softmax(logits, -1)
    positions = sorted({0, len(ids) // 2, len(ids) - 1})
    fields = {
        "name": name,
        "input_ids": list(ids),
        "logits_positions": positions,
        "logits": [logits[position].tolist() for position in positions],
        "argmax": logits.argmax(-1).tolist(),
        "entropy": (-(logprobs.exp() * logprobs).sum(-1)).tolist(),
        "last_hidden_norms": hidden.norm(dim=-1).tolist(),
        **greedy_fields(model, ids),
    }
    if records:
        fields["router"] = router_fields(records, model.config)
    if len(ids) == 1:
        return fields
    targets = torch.tensor(ids[1:])
    chosen = logprobs[:-1].gather(1, targets[:, None])[:, 0]
    weights = torch.randn(len(ids) - 1)
    loss = -chosen.mean()
    weighted = -(weights * chosen).mean()
    grads = gradients_of(model, loss)
    fields |= {
        "log_probs": chosen.tolist(),
        "loss": loss.item(),
        "perplexity": loss.exp().item(),
        "grad_global_norm": math.sqrt(sum(grad.norm().item()**2 for grad in grads.values())),
        "grad_norms": {name: grad.norm().item() for name, grad in grads.items()},
        "weights": weights.tolist(),
        "weighted_loss": weighted.item(),
        "weighted_grad_norms": {name: grad.norm().item()
                                for name, grad in gradients_of(model, weighted).items()},
    }
    if entries:
        fields["grad_entries"] = {name: entries_of(grad) for name, grad in grads.items()}
    return fields


def entries_of(grad):
    flat = grad.flatten()
    places = sorted({0, flat.numel() - 1, *torch.randint(flat.numel(), (4,)).tolist()})
    return [[place, flat[place].item()] for place in places]


def bfloat16_fields(folder, cases):
    model = load(folder, torch.bfloat16)
    fields = []
    for case in cases:
        if "log_probs" not in case:
            continue
        ids = case["input_ids"]
        with torch.no_grad():
            logprobs = torch.log_softmax(model(torch.tensor([ids])).logits[0].float(), -1)
        chosen = logprobs[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
        fields.append({"name": case["name"], "log_probs": chosen.tolist(),
                       "loss": -chosen.mean().item()})
    return fields


def load(folder, dtype, attention="eager"):
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, attn_implementation=attention).eval()


def noise_of(folder, model, sequences):
    """How far two computations of transformers itself lie apart."""
    other = load(folder, torch.float32, "sdpa")
    with torch.no_grad():
        return max((model(ids).logits - other(ids).logits).abs().max().item()
                   for ids in (torch.tensor([tokens]) for tokens in sequences.values()))


def compute(folder, sequences, stored_dtype, bfloat16=False):
    """The fields, for token ids by case name."""
    model = load(folder, torch.float32)
    parameters = parameters_of(model)
    rotary = model.model.rotary_emb
    cases = [case_fields(model, name, ids, entries=index == len(sequences) - 1)
             for index, (name, ids) in enumerate(sequences.items())]
    fields = {
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        "model_type": model.config.model_type,
        "stored_dtype": text_of(stored_dtype),
        "compute_dtype": "float32",
        "tie_word_embeddings": model.config.tie_word_embeddings,
        "parameters": {name: list(tensor.shape) for name, tensor in parameters.items()},
        "weight_checks": {name: {"sum": tensor.double().sum().item(),
                                 "abs_sum": tensor.double().abs().sum().item(),
                                 "first": tensor.flatten()[0].item(),
                                 "last": tensor.flatten()[-1].item()}
                          for name, tensor in parameters.items()},
        "rope": {"inv_freq": rotary.inv_freq.tolist(),
                 "attention_scaling": rotary.attention_scaling},
        "noise": {"eager_vs_sdpa_max_abs_logit_diff": noise_of(folder, model, sequences)},
        "cases": cases,
        "padded_batch": {"right": {}, "left": {}},
    }
    if bfloat16:
        fields["bf16_compute"] = bfloat16_fields(folder, cases)
    return fields


def choices_are_clear(model, sequences):
    """Whether tokens and experts can be compared exactly: no choice is near a tie."""
    for ids in sequences.values():
        with torch.no_grad(), Routers(model) as routers:
            model(torch.tensor([ids]))
        if routers.records:
            fields = router_fields(routers.records, model.config)
            if fields["min_topk_probability_margin"] < 1e-4:
                return False
        if greedy_fields(model, ids)["greedy_min_top2_margin"] < 5e-3:
            return False
    return True


def write(folder, fields):
    (folder / "expected.json").write_text(json.dumps(fields))
