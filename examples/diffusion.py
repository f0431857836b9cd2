"""Two trainings that should be equal and are not: the random numbers come from the device.

    python examples/diffusion.py --device-seed 1 --dump /tmp/bench
    python examples/diffusion.py --device-seed 2 --dump /tmp/target
    crossrank compare /tmp/bench /tmp/target          # torch.randint, and its line
    ... both with --on-cpu timesteps                  # torch.rand_like
    ... both with --on-cpu timesteps noise            # the same

One step of a small diffusion model. Weights and images are equal in both runs; what stands for the
generator of a device, which no common seed makes equal on two kinds of device, is seeded apart with
--device-seed. --on-cpu draws some of the random numbers on the CPU and moves them then.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

STEPS, BATCH, PIXELS, WIDTH = 10, 4, 16, 32
DRAWS = ("timesteps", "noise")


class Denoiser(nn.Module):
    """Guesses the noise in an image, given the timestep."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Embedding(STEPS, WIDTH)
        self.into, self.out = nn.Linear(PIXELS, WIDTH), nn.Linear(WIDTH, PIXELS)

    def forward(self, image: Tensor, timestep: Tensor) -> Tensor:
        """Return the noise in each image."""
        return self.out(F.silu(self.into(image) + self.time(timestep)))


def training_loss(
    model: nn.Module, images: Tensor, on_cpu: Sequence[str], cpu: torch.Generator
) -> Tensor:
    """Return the loss of a batch of images with noise in them."""
    share = torch.linspace(0.9, 0.1, STEPS)  # of the image that is left at each timestep
    if "timesteps" in on_cpu:
        timestep = torch.randint(0, STEPS, (BATCH,), generator=cpu).to(images.device)
    else:
        timestep = torch.randint(0, STEPS, (BATCH,), device=images.device)
    if "noise" in on_cpu:
        noise = torch.rand(images.shape, generator=cpu).to(images.device)
    else:
        noise = torch.rand_like(images)
    kept = share[timestep][:, None]
    return F.mse_loss(model(images * kept + noise * (1 - kept), timestep), noise)


def main(argv: Sequence[str] | None = None) -> None:
    """Record one step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--dump", required=True, help="folder for the record")
    parser.add_argument("--device-seed", type=int, default=1)
    parser.add_argument("--on-cpu", nargs="+", choices=DRAWS, default=[], help="draws on the CPU")
    args = parser.parse_args(argv)
    try:
        from crossrank.collectors import PrecisionDebugger
    except ModuleNotFoundError:  # a checkout that is not installed
        sys.path.append(str(Path(__file__).resolve().parents[1]))
        from collectors import PrecisionDebugger
    torch.manual_seed(0)
    model, images = Denoiser(), torch.rand(BATCH, PIXELS)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    cpu = torch.Generator().manual_seed(0)
    torch.manual_seed(args.device_seed)  # from here on, the default generator is the device's
    debugger = PrecisionDebugger(dump_path=args.dump)
    debugger.start(model)
    training_loss(model, images, args.on_cpu, cpu).backward()
    optimizer.step()
    debugger.stop()
    debugger.step()


if __name__ == "__main__":
    main()
