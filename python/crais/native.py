"""The extension: loaded when it is needed, and called with options as keyword arguments."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import inspect
import math
import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crais import errors, programs


@functools.cache
def extension() -> Any:
    """crais._crais. Raises ImportError, which says what to type, where it cannot be used."""
    programs.library()
    return importlib.import_module("crais._crais")


is_program = False  # this process is estimate-logz: runs print their report, and heed all flags
# Of a program at a terminal; Python has other means.
TERMINAL = {"dry_run", "format", "max_time", "quiet", "help", "version"}


def by_flag(options: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The values of each flag: pilot_chains=8 is [8] for pilot-chains. None and False are left out.

    Objects that are neither numbers nor True are their texts, as of a Path. Raises UsageError for a
    flag of a terminal, unless this is a program.
    """
    flags: dict[str, list[Any]] = {}
    for name, value in options.items():
        if name in TERMINAL and not is_program:
            raise errors.UsageError(f"{name} is an option of the programs at a terminal alone")
        values = value if isinstance(value, (list, tuple)) else [value]
        for one in values:
            if isinstance(one, int) and one >= 2**63:
                raise errors.UsageError(f"{name}: {one} is above 2^63 - 1")
            if isinstance(one, str) and one.encode(errors="replace").decode() != one:
                raise errors.UsageError(f"{name}: {one} is not valid UTF-8")
        if given := [one for one in values if one is not None and one is not False]:
            flags[name.replace("_", "-")] = [one if _is_plain(one) else format(one) for one in given]
    return flags


def _is_plain(value: Any) -> bool:
    """JSON has it, and the extension reads it."""
    return math.isfinite(value) if isinstance(value, float) else isinstance(value, int) and value >= -(2**63)


def seeded(options: Mapping[str, Any], rng: np.random.Generator | None) -> dict[str, Any]:
    """The options, with a seed that `rng` draws, where there is one (Scientific Python's SPEC 7)."""
    if rng is None:
        return {**options}
    if options.get("seed") is not None:
        raise errors.UsageError("give seed or rng, not both: each chooses the random numbers")
    return {**options, "seed": int(np.random.default_rng(rng).integers(2**63))}


def check_names(program: str, given: Iterable[str], *functions: Callable[..., Any]) -> None:
    """Raises UsageError for an option that is none, but nearly a parameter of the functions."""
    parameters = {name for function in functions for name in inspect.signature(function).parameters}
    flags = {flag["name"].replace("-", "_") for flag in extension().options(program)}
    for name in sorted({*given} - flags - parameters):
        near = errors.did_you_mean(name, parameters)
        if "model_kwargs" in parameters and not near + errors.did_you_mean(name, flags):
            near = f"; if it is data of a model, give model_kwargs={{'{name}': ...}}"
        if near:
            raise errors.UsageError(f"no option {name}{near}")


def options(program: str) -> str:
    """The options of a program, as the end of a docstring: name, default, meaning, choices."""
    lines: list[str] = []
    title = ""
    for flag in extension().options(program):
        name = flag["name"].replace("-", "_")
        if name in TERMINAL:
            continue
        if flag["group"] != title:
            title = flag["group"]
            lines += ["", title]
        default = f" [{', '.join(flag['default'])}]" if flag["default"] else ""
        first, *choices = flag["help"].split("\n")
        lines.append(f"  {name}={flag['value'] or True}{default}: {first}")
        lines += [f"      {choice}" for choice in choices]
    return worded(program, "\n".join("    " + line if line else "" for line in lines)) + "\n    "


def worded(program: str, text: str) -> str:
    """A program's message for callers from Python: --step-size is step_size."""
    text = extension().with_flags(program, text)
    if is_program:
        return str(text)
    return re.sub(r"--([a-z][a-z0-9-]*)", lambda flag: flag[1].replace("-", "_"), text)


class Run:
    """One call of the extension: what it asks of Python, from any thread."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]], progress: bool, unit: str) -> None:
        """`progress`: a bar counts in `unit`, where tqdm is installed."""
        self.is_program = is_program
        self.stopped = False  # by Ctrl-C, or since Python ends
        self.astray = ""  # where the density was first not finite
        self.images = torch.empty(0)
        self.called = False  # the model was
        self.epoch: Callable[[dict[str, Any]], None] = lambda metrics: None  # of a training is done
        self._functions = functions
        self._tqdm: Any = None
        with contextlib.suppress(ImportError):
            self._tqdm = importlib.import_module("tqdm.auto").tqdm if progress else None
        self._unit = unit
        self._bar: Any = None

    def call(self, name: str, inputs: tuple[Tensor, ...]) -> Any:
        """A function of the model, on the model's device."""
        if self.stopped:
            raise KeyboardInterrupt
        self.called = True
        try:
            outputs = self._functions[name](*inputs)
        except KeyboardInterrupt:
            self.stopped = True
            raise
        if name.startswith("joint"):
            self._watch(outputs, inputs)
        return outputs

    def start(self, notice: str, pixels: Tensor, shape: list[int]) -> None:
        """The images as the likelihood takes them [N, numbers], and the shape of one."""
        for line in notice.splitlines():
            self.warn(line.removeprefix("WARNING: "))
        self.images = pixels.reshape(-1, *shape)

    def warn(self, line: str) -> None:
        warnings.warn(line, stacklevel=9)

    def show(self, done: int, total: int, status: str = "") -> None:
        if self._tqdm is not None and self._bar is None:
            self._bar = self._tqdm(total=total, initial=done, unit=f" {self._unit}")
        if self._bar is not None:
            self._bar.n = done
            self._bar.set_postfix_str(status)

    def advance(self, count: int, status: str) -> None:
        if self._bar is not None:
            self._bar.update(count)
            self._bar.set_postfix_str(status)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def _watch(self, outputs: tuple[Tensor, ...], inputs: tuple[Tensor, ...]) -> None:
        """Remembers where log p(x, z) was first not finite."""
        if self.astray or bool(torch.isfinite(outputs[0]).all() & torch.isfinite(outputs[1]).all()):
            return
        row = int((~(torch.isfinite(outputs[0]) & torch.isfinite(outputs[1]).all(1))).nonzero()[0])
        z, x = inputs[0][row], inputs[1][row].cpu()
        same = (self.images == x).flatten(1).all(1).nonzero()
        point = ", ".join(f"{value:.4g}" for value in z[:4].tolist()) + (", ..." * (len(z) > 4))
        image = f"image {int(same[0])}" if len(same) else "an image that the model draws"
        self.astray = f"; log p(x, z) of {image} is not finite at z = ({point})"


_running: set[Run] = set()
_busy: dict[threading.Thread, int] = {}  # in so many functions of ours each
_ends = False  # Python does


@contextlib.contextmanager
def awaited() -> Iterator[None]:
    """Python does not end while a thread is in here.

    A thread that is in the extension then would wait for Python for ever, and one in PyTorch would abort the process.
    """
    if torch.get_default_device().type == "meta":
        raise errors.UsageError("PyTorch's default device is meta, which has no numbers: choose another")
    thread = threading.current_thread()
    _busy[thread] = _busy.get(thread, 0) + 1
    try:
        yield
    finally:
        _busy[thread] = _busy.get(thread, 1) - 1
        if _busy[thread] == 0:
            del _busy[thread]


def _stop_all() -> None:
    global _ends
    _ends = True
    threads = list(_busy)
    for run in list(_running):
        run.stopped = True
    if _running:
        extension().stop()
    while _busy:
        time.sleep(0.001)
    until = time.monotonic() + 1  # for them to end, and to free what they hold
    while any(thread.is_alive() for thread in threads) and time.monotonic() < until:
        time.sleep(0.001)


atexit.register(_stop_all)
os.register_at_fork(after_in_child=_busy.clear)  # the other threads are not there


@contextlib.contextmanager
def as_before(device: torch.device) -> Iterator[None]:
    """PyTorch's modes are the same afterwards, whatever the model does to them."""
    threads = torch.get_num_threads()
    with torch.inference_mode(False), torch.autocast(device.type, enabled=False):
        try:
            yield
        finally:
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)


def call(
    program: str,
    function: Callable[[Run], Any],
    *,
    progress: bool,
    unit: str,
    functions: Mapping[str, Callable[..., Any]] = {},
    device: torch.device | None = None,
    check: Callable[[], None] | None = None,
) -> tuple[Any, Run]:
    """What `function` of the extension returns, and its run.

    `check` comes last, where the run has called the functions: are they what they were? Raises crais.errors, whatever
    the model raises, and Interrupted if it was stopped before anything was done.
    """
    run = Run(functions, progress, unit)
    if _ends:
        raise errors.Interrupted("interrupted; Python is shutting down")
    _running.add(run)
    try:
        with as_before(device or torch.device("cpu")):
            returned = function(run)
            if check is not None and run.called and not run.stopped:
                check()
            return returned, run
    except (errors.UsageError, errors.DataError, errors.NoInputError, errors.Interrupted) as error:
        where = run.astray if isinstance(error, errors.DataError) else ""
        error.args = (worded(program, str(error)) + where,)
        raise
    finally:
        _running.discard(run)
        run.close()
