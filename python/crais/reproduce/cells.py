"""What experiments run, on named densities and on images. Each result is made once and kept in a file, a cell."""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import math
import os
import re
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import crais
from crais import native, safetensors
from crais.errors import DataError, Interrupted, PlanError, UsageError
from crais.native import by_flag, extension

Options = argparse.Namespace  # the flags of the command line
Values = dict[str, Any]
# A key, all that a result depends on, and what finds it: lists of numbers by name, or why it `failed`.
Task = tuple[str, Callable[[], Values]]
OF_SUBJECTS = {"target", "problems", "particles", "images", "model", "points"}  # values that say what one is
stopped = threading.Event()  # by a signal


def stop(*_: object) -> None:
    """A signal stops what runs, within two seconds; another ends the process."""
    if stopped.is_set():
        os._exit(os.EX_TEMPFAIL)
    stopped.set()
    extension().stop()
    raise Interrupted("interrupted; the same command goes on with what is done")


def digest_of(data: Tensor | bytes) -> str:
    return hashlib.sha256(data.contiguous().numpy().tobytes() if isinstance(data, Tensor) else data).hexdigest()


class Store:
    """The results of tasks, each kept in DIR/cells under a digest of its key.

    A finished task is never run again, so the same command goes on after an interruption.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self._asked: dict[str, Callable[[], Values]] = {}
        self._done: dict[str, Values] = {}

    def results(self, tasks: list[Task]) -> list[Values]:
        """Those that are there; `run` makes the others. Raises DataError for a damaged one, and
        UsageError for one of another build, unless options accept it."""
        self._asked |= {key: compute for key, compute in tasks if not self._has(key)}
        return [self._done[key] for key, _ in tasks if key in self._done]

    def run(self, label: str) -> None:
        """Makes what was asked for, in parallel. Raises Interrupted."""
        device, total = self.options.device, len(self._asked)
        on_gpu = device.startswith("cuda") or device == "auto" and torch.cuda.is_available()
        threads = 1 if on_gpu else self.options.threads or len(os.sched_getaffinity(0))
        shows = total > 0 and not self.options.quiet and sys.stderr.isatty()
        with contextlib.closing(native.Run({}, shows, "cells")) as bar, ThreadPoolExecutor(threads) as workers:
            bar.show(0, total, label)
            for _ in workers.map(self._make, self._asked, self._asked.values()):
                bar.advance(1, label)
        self._asked.clear()

    def _path(self, key: str) -> Path:
        return Path(self.options.out, "cells", f"{digest_of(key.encode())[:24]}.json")

    def _make(self, key: str, compute: Callable[[], Values]) -> None:
        self._done[key] = result = compute()
        cell = {"key": key, "computed_by": extension().computed_by(), "result": result}
        extension().write_file(str(self._path(key)), json.dumps(cell))

    def _has(self, key: str) -> bool:
        """Reads it if it is new."""
        if key in self._done or not (path := self._path(key)).exists():
            return key in self._done
        try:
            cell = json.loads(path.read_text())
            result, by = cell["result"], cell["computed_by"]
            if not result or cell["key"] != key or not isinstance(result.get("failed", ""), str):
                raise ValueError
            for numbers in [] if "failed" in result else result.values():
                (_,) = torch.tensor(numbers).double().shape
        except (OSError, ValueError, TypeError, AttributeError, LookupError, RuntimeError):
            raise DataError(f"{path}: is damaged; delete it to have it computed again") from None
        difference = extension().difference_of_builds(by)
        if difference and not self.options.accept_other_version:
            advice = "--accept-other-version takes it as it is, another --out or an empty folder computes it anew"
            raise UsageError(f"{path}: another build has computed this ({difference}); {advice}")
        self._done[key] = result
        return True


class Variant:
    """The results of some seeds of one variant, by name. Empty where a seed has failed."""

    def __init__(self, cells: list[Values]) -> None:
        self.failed = next((str(cell["failed"]) for cell in reversed(cells) if "failed" in cell), "")
        self.cells = [] if self.failed else cells

    def each(self, name: str) -> list[Tensor]:
        """One for each seed; [] if there is none."""
        return [torch.tensor(cell[name], dtype=torch.float64) for cell in self.cells if name in cell]

    def column(self, name: str) -> Tensor:
        """[S, N]; NaN [1, 1] if there is none."""
        return torch.stack(self.each(name) or [torch.tensor([torch.nan], dtype=torch.float64)])

    def first(self, name: str) -> Tensor:
        """Of the first seed; [0] if there is none."""
        return (self.each(name) or [torch.empty(0).double()])[0]

    def mean(self, *names: str) -> float:
        """The sum of one number a seed each, on average."""
        return sum(sum(map(float, self.column(name))) / len(self.column(name)) for name in names)


@dataclass
class Subject:
    """What is estimated: named densities, images under a model, or images that a small model draws."""

    operand: str
    options: dict[str, Any]
    identity: Any  # tells it from others
    has_images: bool  # repetitions are the seeds; else problems differ, and they are the problems too
    images: Tensor | None = None
    particles: int = 0  # to keep of each run
    truth: Tensor | None = None  # log Z [] or log p(x) [N], nats
    masses: Tensor | None = None  # [M] of the target's modes
    draws: Tensor | None = None  # [count, 2], exact ones

    def task(self, flags: str, seed: int, most: int = 0) -> Task:
        """A command line. Or with `most` steps its plan, cheaply: one chain after the same pilots, and
        the images that they look at."""
        pairs = re.findall(r"--(\S+)(?: +(?!--)(\S+))?", flags)
        given: dict[str, Any] = {name.replace("-", "_"): value or True for name, value in pairs}
        if not self.has_images:
            given = {"base": "prior", **({} if "method" in given else {"witness": "none"}), **given}
        if most:
            pilots = min(max(int(given.get("chains", 8)), 16), 256)
            given = {"pilot_chains": pilots, **given, "chains": 1, "max_steps": most}
        options = {**self.options, **given, "seed": seed, "threads": 1}
        settings = extension().settings("eval-loglik" if self.has_images else "estimate-logz", by_flag(options))
        images = self.images[:16] if most and self.images is not None else self.images
        key = [self.identity, settings, self.particles, None if images is None else len(images)]
        return json.dumps(key), functools.partial(self._cell, options, images)

    def _cell(self, options: dict[str, Any], images: Tensor | None) -> Values:
        """The columns of the first method [N], one number a run, and a plan. Modes with a tenth of their mass
        or more are reached; astray is the total variation between the masses that a run finds and the true ones."""
        run: Any = functools.partial(crais.evaluate, images=images) if self.has_images else crais.log_normalizer
        try:
            result = run(self.operand, progress=False, **options)
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
            if self.masses is not None:
                found = masses.view(-1, len(self.masses))
                cell |= {"reached": (found >= 0.1 * self.masses).sum(1).tolist(), "modes": [len(self.masses)]}
                cell |= {"astray": (0.5 * (found - self.masses).abs().sum(1)).tolist()}
        return cell


def subject_of(
    options: Options, store: Store, folder: Path, target: str = "", problems: str = "1", particles: str = "0",
    images: str = "", model: str = "", points: str = "512",
) -> Subject:  # fmt: skip
    """A target; or `images` of the checkpoint; or of a `model` in the folder, with their log p(x)."""
    own: dict[str, Any] = {"device": options.device}
    if not images:
        own["problems"] = int(problems)
        if target.startswith("logistic-regression"):
            own["data_dir"] = options.data_dir
        probe, *known = extension().known(target, by_flag(own), max(int(particles), 1))
        return Subject(target, own, [target, float(probe)], False, None, int(particles), *known)
    file = folder / model if model else Path(options.checkpoint)
    own |= {"simulate": int(images)} if model else {"limit": int(images), "data_dir": options.data_dir}
    pixels = crais.evaluate(str(file), method="iwae:1", progress=False, **own).images
    identity = [digest_of(file.read_bytes()), digest_of(pixels)]
    if not model:
        return Subject(str(file), {"device": options.device, "chunk": 64, "control": 0}, identity, True, pixels)
    tasks = list[Task]()
    for part in pixels.flatten(1).double().split(500):
        key = json.dumps(["integral", identity[0], digest_of(part), int(points)])
        tasks.append((key, functools.partial(integral, file, part, int(points))))
    store.results(tasks)
    store.run(f"integrals by {points}")
    truth = torch.cat(Variant(store.results(tasks)).each("log_p"))
    return Subject(str(file), own, identity, True, truth=truth)


def integral(file: Path, images: Tensor, points: int) -> Values:
    """log p(x) [N], nats, of binary images [N, pixels] by a checkpoint of tanh units, on a grid of points x
    points latents by the trapezoid rule: exact to rounding once posteriors are wider than the spacing."""
    found = safetensors.load(file.read_bytes())
    decoder = [found[name].double() for name in sorted(found) if name.startswith("decoder.")]  # biases, weights
    reach, rows = 7.0, 2  # rows of the grid at once: they stay in a cache
    axis = torch.linspace(-reach, reach, points, dtype=torch.float64)
    total = torch.full((len(images),), -math.inf, dtype=torch.float64)
    for part in axis.split(rows):
        if stopped.is_set():
            raise Interrupted("interrupted")
        z = torch.cartesian_prod(part, axis)
        logits = torch.addmm(decoder[0], z, decoder[1].T)
        for bias, weight in zip(decoder[2::2], decoder[3::2], strict=True):
            logits = torch.addmm(bias, torch.tanh(logits), weight.T)
        of_z = -0.5 * (z**2).sum(1) - torch.nn.functional.softplus(logits).sum(1)
        total = torch.logaddexp(total, torch.addmm(of_z, images, logits.T).logsumexp(1))
    spacing = 2 * reach / (points - 1)
    return {"log_p": (total + math.log(spacing**2 / (2 * math.pi))).tolist()}
