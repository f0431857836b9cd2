"""A small GRPO, real throughout: a bfloat16 engine that generates, a float32 trainer, gloo ranks.

    python -m tests.collectors.grpo --rank 0 --world 2 --port 29511 --fault temperature --out DIR

The trainer's process saves to DIR/trainer; the engine's values go to a process of their own, which
saves to DIR/engine. A fault is in the code that runs, not in what was written.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TEMPERATURE, STEPS, PROMPTS, SAMPLES, WIDTH, LONGEST = 0.7, 5, 2, 4, 8, 12
PAD, EOS, VOCABULARY, TOP_K = 0, 1, 48, 4


def run_grpo(out: Path, fault: str = "", *, world: int = 2, steps: int = STEPS) -> Path:
    """Run all ranks; return the folder with `engine` and `trainer`."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.collectors.grpo", "--world", str(world)]
    command += ["--fault", fault, "--out", str(out), "--steps", str(steps)]
    ranks = [subprocess.Popen([*command, "--rank", str(r)], cwd=ROOT) for r in range(world)]
    assert [rank.wait() for rank in ranks] == [0] * world
    return out


def save_all(dump: str, rank: int, values: Any) -> None:
    """Save what comes until None; the engine's process."""
    os.environ["RANK"] = str(rank)
    from collectors import SingleSave

    SingleSave(dump)
    while (item := values.get()) is not None:
        SingleSave.save(item) if item else SingleSave.step()
    SingleSave.close()


class Model:
    """Trainer and engine of one rank."""

    def __init__(self, fault: str) -> None:
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.manual_seed(7)
        self.fault = fault
        config = LlamaConfig(
            vocab_size=VOCABULARY, hidden_size=48, intermediate_size=96, num_hidden_layers=2,
            num_attention_heads=4, max_position_embeddings=64, initializer_range=0.2,
            pad_token_id=PAD, eos_token_id=EOS, bos_token_id=2,
        )  # fmt: skip
        self.trainer = LlamaForCausalLM(config)
        self.engine = LlamaForCausalLM(config).to(torch.bfloat16).eval()
        self.optimizer = torch.optim.SGD(self.trainer.parameters(), lr=0.03)

    def sync(self, step: int) -> None:
        """Give the trainer's weights to the engine."""
        if not (self.fault == "stale" and step >= 3):
            self.engine.load_state_dict(self.trainer.state_dict())

    def generate(self, prompts: Any, attention: Any) -> tuple[Any, Any]:
        """Return response ids and the log-probs of the engine, [n, LONGEST]."""
        import torch

        top_k = TOP_K if "topk" in self.fault else 0
        out = self.engine.generate(
            input_ids=prompts, attention_mask=attention, do_sample=True, temperature=TEMPERATURE,
            top_k=top_k, max_new_tokens=LONGEST, output_scores=True, return_dict_in_generate=True,
        )  # fmt: skip
        ids = out.sequences[:, prompts.shape[1] :]
        scores = torch.stack(out.scores, dim=1).float().log_softmax(-1)
        picked = scores.gather(-1, ids.unsqueeze(-1)).squeeze(-1)
        short = LONGEST - ids.shape[1]
        pad = torch.nn.functional.pad
        return pad(ids, (0, short), value=PAD), pad(picked, (0, short))

    def log_probs(self, prompts: Any, responses: Any, attention: Any) -> Any:
        """Return the trainer's log-probs of the responses, [n, LONGEST]."""
        import torch

        ids = torch.cat([prompts, responses], dim=1)
        positions = (attention.cumsum(-1) - 1).clamp(min=0)
        logits = self.trainer(
            input_ids=ids, attention_mask=attention, position_ids=positions
        ).logits
        logits, labels = logits[:, :-1], ids[:, 1:]
        if self.fault != "temperature":
            logits = logits / TEMPERATURE
        if self.fault == "topk":
            drawn = torch.nn.functional.one_hot(labels, VOCABULARY).bool()
            left_out = logits < logits.topk(TOP_K, dim=-1).values[..., -1:]
            logits = logits.masked_fill(left_out & ~drawn, -torch.inf)
        picked = logits.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
        start = prompts.shape[1] - (2 if self.fault == "alignment" else 1)
        return picked[:, start : start + LONGEST]


def train(rank: int, world: int, fault: str, out: Path, steps: int) -> None:
    """Train one rank and save what it sees."""
    import torch
    import torch.distributed as dist

    from collectors import SingleSave

    context = multiprocessing.get_context("spawn")
    values = context.Queue()
    saver = context.Process(target=save_all, args=(str(out / "engine"), rank, values))
    saver.start()
    SingleSave(out / "trainer")
    SingleSave.save_config({"temperature": TEMPERATURE, "rollout_dtype": "bfloat16"})
    torch.set_num_threads(1)
    model = Model(fault)
    for step in range(steps):
        model.sync(step)
        seed = torch.Generator().manual_seed(1000 * step + rank)
        torch.manual_seed(1000 * step + rank)
        for prompt in range(PROMPTS):
            engine, trainer, loss = micro_batch(model, seed, f"{step}{rank}{prompt}")
            values.put({key: value.numpy() for key, value in engine.items()})
            SingleSave.save(trainer)
            loss.backward()
        for parameter in model.trainer.parameters():
            dist.all_reduce(parameter.grad)
        model.optimizer.step()
        model.optimizer.zero_grad()
        values.put({})
        SingleSave.step()
    values.put(None)
    saver.join()
    SingleSave.close()
    assert saver.exitcode == 0


def micro_batch(model: Model, seed: Any, uid: str) -> tuple[dict, dict, Any]:
    """Return what the engine and the trainer save of one prompt, and the loss."""
    import torch

    length = int(torch.randint(3, WIDTH, (1,), generator=seed))
    prompt = torch.randint(3, VOCABULARY, (length,), generator=seed)
    prompts = torch.cat([torch.full((WIDTH - length,), PAD), prompt]).repeat(SAMPLES, 1)
    seen = (prompts != PAD).long()
    responses, engine = model.generate(prompts, seen)
    ended = (responses == EOS).cumsum(1) - (responses == EOS).long()
    mask = (ended == 0).long()
    attention = torch.cat([seen, mask], dim=1)
    own = model.log_probs(prompts, responses, attention)
    reward = (responses % 3 == 0).float().mul(mask).mean(1)
    advantages = (reward - reward.mean()) / (reward.std() + 1e-4)
    old = own.detach()
    ratio = (own - old).exp()
    loss = -(ratio * advantages[:, None] * mask).sum() / mask.sum()
    shared = {
        "uid": torch.full((SAMPLES,), int(uid)),
        "sample_index": torch.arange(SAMPLES),
        "prompt_ids": prompts,
        "response_ids": responses,
        "attention_mask": attention,
        "reward": reward,
    }
    kept = torch.nn.functional.pad(mask, (1, -1)) if model.fault == "mask" else mask
    trainer = {
        **shared,
        "response_mask": kept,
        "log_prob": old,
        "rollout_log_prob": engine,
        "advantages": advantages,
        "loss": loss.detach(),
    }
    return {**shared, "response_mask": mask, "log_prob": engine}, trainer, loss


def main() -> None:
    import torch.distributed as dist

    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int)
    parser.add_argument("--world", type=int)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--fault")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    os.environ["RANK"] = str(args.rank)
    store = f"file://{args.out.absolute()}.store"
    dist.init_process_group("gloo", store, rank=args.rank, world_size=args.world)
    train(args.rank, args.world, args.fault, args.out, args.steps)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
