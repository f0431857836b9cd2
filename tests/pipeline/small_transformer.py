"""One recorded step of a small transformer, in several variants; run as a script.

python -m tests.pipeline.small_transformer DUMP [--dtype bfloat16] [--weight] [--output] [--order]
"""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from collectors import PrecisionDebugger

WIDTH, HEADS, LAYERS, VOCABULARY, SEQUENCE = 32, 4, 4, 64, 16
ODD = LAYERS // 2


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.gain = 1.0

    def forward(self, x: Tensor) -> Tensor:
        h, shape = self.ln1(x), (len(x), SEQUENCE, HEADS, WIDTH // HEADS)
        q, k, v = (layer(h).view(shape).transpose(1, 2) for layer in (self.q, self.k, self.v))
        seen = (q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5).softmax(-1) @ v
        x = x + self.o(seen.transpose(1, 2).reshape(x.shape))
        inner = self.up(self.ln2(x))
        if self.gain != 1.0:
            inner = inner * self.gain
        return x + self.down(F.gelu(inner))


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def reorder(block: Block) -> None:
    """Number the hidden units of a block anew: every sum over them runs in another order."""
    order = torch.randperm(4 * WIDTH, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        block.up.weight.copy_(block.up.weight[order])
        block.up.bias.copy_(block.up.bias[order])
        block.down.weight.copy_(block.down.weight[:, order])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dump")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--weight", action="store_true", help="a layer's weight is 1 % larger")
    parser.add_argument("--output", action="store_true", help="a layer's output is 1 % larger")
    parser.add_argument("--order", action="store_true", help="another order of sums")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    model, data = Transformer(), torch.randint(0, VOCABULARY, (4, SEQUENCE + 1))
    odd = model.blocks[ODD]
    if args.weight:
        odd.up.weight.data.mul_(1.01)
    if args.output:
        odd.gain = 1.01
    if args.order:
        for block in model.blocks:
            reorder(block)
    model.to(getattr(torch, args.dtype))
    debugger = PrecisionDebugger(dump_path=args.dump)
    debugger.start(model)
    logits = model(data[:, :-1]).float()
    F.cross_entropy(logits.flatten(0, 1), data[:, 1:].flatten()).backward()
    debugger.stop()
    debugger.step()


if __name__ == "__main__":
    main()
