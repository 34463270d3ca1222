"""The runs of experiments. Each is made once and kept in a file, a cell."""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import crais
from crais import native
from crais.errors import DataError, Interrupted, OutputError, PlanError, UsageError

Options = argparse.Namespace  # the flags of the command line
Values = dict[str, Any]
_FLAG = re.compile(r"--(\S+)(?:\s+(?!--)(\S+))?")
_stopped = threading.Event()  # by a signal


def heed_signals() -> None:
    """The first signal stops what runs, within two seconds; another ends the process."""

    def stop(*_: object) -> None:
        if _stopped.is_set():
            os._exit(os.EX_TEMPFAIL)
        _stopped.set()
        native.extension().stop()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)


def raise_if_stopped() -> None:
    if _stopped.is_set():
        raise Interrupted("interrupted; the same command goes on with what is done")


def write(path: Path, text: str) -> None:
    """The whole file or none, in a folder that is made."""
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        if part.is_file():
            part.unlink()
        raise OutputError(f"{path}: {error.strerror}") from error


def digest_of(data: Tensor | bytes) -> str:
    return hashlib.sha256(data.contiguous().numpy().tobytes() if isinstance(data, Tensor) else data).hexdigest()


@dataclass(frozen=True)
class Task:
    key: str  # everything that the result depends on
    compute: Callable[[], Values]  # lists of numbers by name, or why it `failed`


def run_tasks(options: Options, label: str, tasks: list[Task]) -> dict[str, Values]:
    """The results of the tasks by key, in parallel and equal ones once.

    Each is kept in DIR/cells under a digest of its key. A finished task is never run again, so the
    same command goes on after an interruption. Raises Interrupted; DataError for a damaged result;
    UsageError for one of another build, unless options accept it.
    """
    todo = {one.key: one for one in tasks}
    paths = {key: Path(options.out, "cells", f"{digest_of(key.encode())[:24]}.json") for key in todo}
    done = {key: _stored(path, key, options) for key, path in paths.items() if path.exists()}
    shows = not options.quiet and sys.stderr.isatty()

    def make(task: Task) -> None:
        raise_if_stopped()
        result = task.compute()
        by = json.loads(native.extension().computed_by())
        write(paths[task.key], json.dumps({"key": task.key, "computed_by": by, "result": result}))
        done[task.key] = result

    on_gpu = options.device.startswith("cuda") or options.device == "auto" and torch.cuda.is_available()
    threads = 1 if on_gpu else options.threads or len(os.sched_getaffinity(0))
    with concurrent.futures.ThreadPoolExecutor(threads) as workers:
        pending = {workers.submit(make, one) for key, one in todo.items() if key not in done}
        count, start = len(pending), time.monotonic()
        try:
            while pending:
                if shows:
                    left = (time.monotonic() - start) / 60 * len(pending) / max(1, count - len(pending))
                    progress = f"{label}: {len(done)} of {len(todo)} cells, {left:.1f} minutes left"
                    print(f"\r{progress}\x1b[K", end="", file=sys.stderr)
                made, pending = concurrent.futures.wait(pending, 0.1, concurrent.futures.FIRST_EXCEPTION)
                raise_if_stopped()
                for one in made:
                    one.result()
        finally:
            workers.shutdown(wait=False, cancel_futures=True)
            print("\r\x1b[K" if shows else "", end="", file=sys.stderr)
    return done


def _stored(path: Path, key: str, options: Options) -> Values:
    try:
        cell = json.loads(path.read_text())
        result: Values = cell["result"]
        by = json.dumps(cell["computed_by"])
        if "failed" in result:
            is_whole = isinstance(result["failed"], str) and isinstance(result["unfinished"], bool)
        else:
            is_whole = bool(result) and all(torch.tensor(each).double().dim() == 1 for each in result.values())
        is_whole &= cell["key"] == key
    except (OSError, ValueError, TypeError, AttributeError, LookupError, RuntimeError):
        is_whole = False
    if not is_whole:
        raise DataError(f"{path}: is damaged; delete it to have it computed again")
    difference = native.extension().difference_of_builds(by)
    if difference and not options.accept_other_version:
        raise UsageError(
            f"{path}: another build has computed this ({difference}); --accept-other-version takes it "
            "as it is, another --out or an empty folder computes it anew"
        )
    return result


@dataclass
class Subject:
    """What rows estimate: a named density, or images under a model."""

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
        if _FLAG.sub("", flags).strip():
            raise DataError(f"these are no flags of a program: {flags}")
        given = {name.replace("-", "_"): value or True for name, value in _FLAG.findall(flags)}
        if not self.has_images:
            given = {"base": "prior", **({} if "method" in given else {"witness": "none"}), **given}
        options = {**self.options, **given, "seed": seed, "threads": 1}
        program = "eval-loglik" if self.has_images else "estimate-logz"
        settings = native.extension().settings(program, native.by_flag(options))
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
            too_long = re.search("has (reached beta|not arrived)", str(error))
            return {"failed": str(error), "unfinished": bool(too_long)}
        report, (spent,) = result._report, [
            value for name, value in result.methods[0].items() if name.startswith("evaluations_per")
        ]
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


class Variant:
    """The results of some seeds of one variant, by name. Empty where a seed has failed."""

    def __init__(self, cells: list[Values]) -> None:
        failed = [cell for cell in cells if "failed" in cell]
        self.failed: str = failed[-1]["failed"] if failed else ""
        self.unfinished = bool(failed and failed[-1]["unfinished"])  # the plan is too long
        self.cells = [] if failed else cells

    def each(self, name: str) -> list[Tensor]:
        """One for each seed; [] if there is none."""
        return [torch.tensor(cell[name], dtype=torch.float64) for cell in self.cells if name in cell]

    def column(self, name: str) -> Tensor:
        """[S, N]; NaN [1, 1] if there is none."""
        found = self.each(name) or [torch.tensor([torch.nan], dtype=torch.float64)]
        if len({len(column) for column in found}) > 1:
            raise DataError(f"results of seeds have different numbers of '{name}'; delete those in cells")
        return torch.stack(found)

    def first(self, name: str) -> Tensor:
        """Of the first seed; [0] if there is none."""
        return next(iter(self.each(name)), torch.empty(0).double())

    def mean(self, *names: str) -> float:
        """The sum of one number a seed each, on average."""
        return sum(sum(map(float, self.column(name))) / len(self.column(name)) for name in names)
