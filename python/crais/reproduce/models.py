"""Images that a small model draws, with their log p(x) as an integral over its two latents."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path

import torch
from torch import Tensor

import crais
from crais import safetensors
from crais.errors import NoInputError
from crais.reproduce.cells import Options, Subject, Task, digest_of, raise_if_stopped, run_tasks


def drawn_subject(options: Options, file: Path, count: int, points: int) -> Subject:
    """`count` images of seed 0 of a checkpoint with tanh units and Bernoulli pixels."""
    if not file.is_file():
        raise NoInputError(f"no such file: {file}")
    own = {"device": options.device, "simulate": count}
    images = crais.evaluate(str(file), method="iwae:1", progress=False, **own).images
    identity = [digest_of(file.read_bytes()), digest_of(images)]
    decoder, tasks = decoder_of(file), []
    for part in images.flatten(1).double().split(500):
        key = json.dumps(["integral", identity[0], digest_of(part), points])
        tasks.append(Task(key, functools.partial(integral, decoder, part, points)))
    done = run_tasks(options, f"integrals by {points}", tasks)
    truth = torch.tensor([value for one in tasks for value in done[one.key]["log_p"]], dtype=torch.float64)
    return Subject(str(file), own, identity, truth=truth)


def decoder_of(file: Path) -> list[Tensor]:
    """Biases and weights of a checkpoint's decoder, layer after layer, float64."""
    found = safetensors.load(file.read_bytes())
    return [found[name].double() for name in sorted(found) if name.startswith("decoder.")]


def integral(decoder: list[Tensor], images: Tensor, points: int) -> dict[str, list[float]]:
    """log p(x) [N], nats, of binary images [N, pixels], on a grid of points x points latents by the
    trapezoid rule: exact to rounding once posteriors are wider than the spacing."""
    reach, rows = 7.0, 2  # rows of the grid at once: they stay in a cache
    axis = torch.linspace(-reach, reach, points, dtype=torch.float64)
    total = torch.full((len(images),), -math.inf, dtype=torch.float64)
    for begin in range(0, points, rows):
        raise_if_stopped()
        z = torch.cartesian_prod(axis[begin : begin + rows], axis)
        logits = torch.addmm(decoder[0], z, decoder[1].T)
        for bias, weight in zip(decoder[2::2], decoder[3::2], strict=True):
            logits = torch.addmm(bias, torch.tanh(logits), weight.T)
        of_z = -0.5 * (z**2).sum(1) - torch.nn.functional.softplus(logits).sum(1)
        total = torch.logaddexp(total, torch.addmm(of_z, images, logits.T).logsumexp(1))
    spacing = 2 * reach / (points - 1)
    return {"log_p": (total + math.log(spacing**2 / (2 * math.pi))).tolist()}
