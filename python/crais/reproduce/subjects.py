"""What is estimated: named densities, images under a model, and images that a small model draws,
with their log p(x) as an integral over its two latents."""

from __future__ import annotations

import functools
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import crais
from crais import safetensors
from crais.errors import Interrupted, NoInputError, PlanError
from crais.native import by_flag, extension
from crais.reproduce.cells import Options, Store, Task, Values, digest_of, stopped

OF_SUBJECTS = {"target", "problems", "particles", "images", "model", "points"}  # values that say what one is


@dataclass
class Subject:
    operand: str
    options: dict[str, Any]
    identity: Any  # tells it from others
    images: Tensor | None = None
    particles: int = 0  # to keep of each run
    truth: Tensor | None = None  # log Z [] or log p(x) [N], nats
    masses: Tensor | None = None  # [M] of the target's modes
    draws: Tensor | None = None  # [count, 2], exact ones

    @property
    def has_images(self) -> bool:
        """Problems differ, so that repetitions are the seeds; else they are the problems too."""
        return "problems" not in self.options

    def task(self, flags: str, seed: int, only_plans: bool) -> Task:
        """A command line. With `only_plans`, the images that its pilots look at are enough."""
        pairs = re.findall(r"--(\S+)(?: +(?!--)(\S+))?", flags)
        given: dict[str, Any] = {name.replace("-", "_"): value or True for name, value in pairs}
        if not self.has_images:
            given = {"base": "prior", **({} if "method" in given else {"witness": "none"}), **given}
        options = {**self.options, **given, "seed": seed, "threads": 1}
        program = "eval-loglik" if self.has_images else "estimate-logz"
        settings = extension().settings(program, by_flag(options))
        images = self.images[:16] if only_plans and self.images is not None else self.images
        key = [self.identity, settings, self.particles, None if images is None else len(images)]
        return Task(json.dumps(key), functools.partial(self._cell, options, images))

    def _cell(self, options: dict[str, Any], images: Tensor | None) -> Values:
        """The columns of the first method [N], one number a run, and a plan."""
        result: crais.Result | crais.Evidence
        try:
            if self.has_images:
                result = crais.evaluate(self.operand, images, progress=False, **options)
            else:
                result = crais.log_normalizer(self.operand, progress=False, **options)
        except PlanError as error:
            return {"failed": str(error)}
        report, method = result._report, result.methods[0].items()
        spent = next(value for name, value in method if name.startswith("evaluations_per"))
        transitions, betas, divergence = report.plan
        cell = {name: column[0].tolist() for name, column in result._tables[result.method].items()}
        cell |= {name: [spent[name]] for name in ("base", "tuning", "estimating")}
        cell |= {"transitions": [transitions], "training_seconds": [report.learning_seconds]}
        cell |= {"betas": betas.tolist(), "divergence": divergence.tolist()}
        if self.particles:
            drawn, masses = report.cloud(self.particles)
            cell |= {"x": drawn[:, 0].tolist(), "y": drawn[:, 1].tolist()}
            cell |= {} if masses is None else {"masses": masses.flatten().tolist()}
        return cell


def subject_of(
    options: Options, store: Store, folder: Path, target: str = "", problems: str = "1", particles: str = "0",
    images: str = "", model: str = "", points: str = "512",
) -> Subject:  # fmt: skip
    """A target; or `images` of the checkpoint; or of a `model` in the folder, with their log p(x)."""
    own: dict[str, Any] = {"device": options.device}
    if not images:
        own |= {"problems": int(problems)}
        if target.startswith("logistic-regression"):
            own["data_dir"] = options.data_dir
        probe, truth, masses, draws = extension().known(target, by_flag(own), max(int(particles), 1))
        return Subject(target, own, [target, probe], None, int(particles), truth, masses, draws)
    file = folder / model if model else Path(options.checkpoint)
    if not file.is_file():
        raise NoInputError(f"no such file: {file}")
    chosen = {"simulate": int(images)} if model else {"limit": int(images), "data_dir": options.data_dir}
    pixels = crais.evaluate(str(file), method="iwae:1", progress=False, **own, **chosen).images
    identity = [digest_of(file.read_bytes()), digest_of(pixels)]
    if not model:
        return Subject(str(file), {**own, "chunk": 64, "control": 0}, identity, pixels)
    decoder, tasks = decoder_of(file), []
    for part in pixels.flatten(1).double().split(500):
        key = json.dumps(["integral", identity[0], digest_of(part), int(points)])
        tasks.append(Task(key, functools.partial(integral, decoder, part, int(points))))
    store.results(tasks)
    store.run(f"integrals by {points}")
    found = store.results(tasks)
    truth = torch.tensor([value for one in found for value in one["log_p"]], dtype=torch.float64)
    return Subject(str(file), {**own, **chosen}, identity, truth=truth)


def decoder_of(file: Path) -> list[Tensor]:
    """Biases and weights of a checkpoint's decoder, layer after layer, float64."""
    found = safetensors.load(file.read_bytes())
    return [found[name].double() for name in sorted(found) if name.startswith("decoder.")]


def integral(decoder: list[Tensor], images: Tensor, points: int) -> dict[str, list[float]]:
    """log p(x) [N], nats, of binary images [N, pixels] by a decoder of tanh units, on a grid of points x
    points latents by the trapezoid rule: exact to rounding once posteriors are wider than the spacing."""
    reach, rows = 7.0, 2  # rows of the grid at once: they stay in a cache
    axis = torch.linspace(-reach, reach, points, dtype=torch.float64)
    total = torch.full((len(images),), -math.inf, dtype=torch.float64)
    for begin in range(0, points, rows):
        if stopped.is_set():
            raise Interrupted("interrupted")
        z = torch.cartesian_prod(axis[begin : begin + rows], axis)
        logits = torch.addmm(decoder[0], z, decoder[1].T)
        for bias, weight in zip(decoder[2::2], decoder[3::2], strict=True):
            logits = torch.addmm(bias, torch.tanh(logits), weight.T)
        of_z = -0.5 * (z**2).sum(1) - torch.nn.functional.softplus(logits).sum(1)
        total = torch.logaddexp(total, torch.addmm(of_z, images, logits.T).logsumexp(1))
    spacing = 2 * reach / (points - 1)
    return {"log_p": (total + math.log(spacing**2 / (2 * math.pi))).tolist()}
