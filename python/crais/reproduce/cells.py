"""The runs of experiments. Each is made once and kept in a file, a cell."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from crais import native
from crais.errors import DataError, Interrupted, OutputError, UsageError

Options = argparse.Namespace  # the flags of the command line
Values = dict[str, Any]
stopped = threading.Event()  # by a signal


def heed_signals() -> None:
    """The first signal stops what runs, within two seconds; another ends the process."""

    def stop(*_: object) -> None:
        if stopped.is_set():
            os._exit(os.EX_TEMPFAIL)
        stopped.set()
        native.extension().stop()
        raise Interrupted("interrupted; the same command goes on with what is done")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)


def write(path: Path, text: str) -> None:
    """The whole file or none, in a folder that is made."""
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def digest_of(data: Tensor | bytes) -> str:
    return hashlib.sha256(data.contiguous().numpy().tobytes() if isinstance(data, Tensor) else data).hexdigest()


class Task(NamedTuple):
    key: str  # everything that the result depends on
    compute: Callable[[], Values]  # lists of numbers by name, or why it `failed`


class Store:
    """The results of tasks, each kept in DIR/cells under a digest of its key.

    A finished task is never run again, so the same command goes on after an interruption.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self._asked: dict[str, Task] = {}
        self._done: dict[str, Values] = {}

    def results(self, tasks: list[Task]) -> list[Values]:
        """Those that are there; `run` makes the others. Raises DataError for a damaged one, and
        UsageError for one of another build, unless options accept it."""
        self._asked |= {task.key: task for task in tasks if not self._has(task.key)}
        return [self._done[task.key] for task in tasks if task.key in self._done]

    def run(self, label: str) -> None:
        """Makes what was asked for, in parallel. Raises Interrupted."""
        device, tasks = self.options.device, list(self._asked.values())
        on_gpu = device.startswith("cuda") or device == "auto" and torch.cuda.is_available()
        threads = 1 if on_gpu else self.options.threads or len(os.sched_getaffinity(0))
        shows = bool(tasks) and not self.options.quiet and sys.stderr.isatty()
        with contextlib.closing(native.Run({}, shows, "cells")) as bar, ThreadPoolExecutor(threads) as workers:
            bar.show(0, len(tasks), label)
            for _ in workers.map(self._make, tasks):
                bar.advance(1, label)
        self._asked.clear()

    def _path(self, key: str) -> Path:
        return Path(self.options.out, "cells", f"{digest_of(key.encode())[:24]}.json")

    def _make(self, task: Task) -> None:
        result, by = task.compute(), json.loads(native.extension().computed_by())
        write(self._path(task.key), json.dumps({"key": task.key, "computed_by": by, "result": result}))
        self._done[task.key] = result

    def _has(self, key: str) -> bool:
        """Reads it if it is new."""
        if key in self._done or not (path := self._path(key)).exists():
            return key in self._done
        try:
            cell = json.loads(path.read_text())
            result, by = cell["result"], json.dumps(cell["computed_by"])
            if not result or cell["key"] != key or not isinstance(result.get("failed", ""), str):
                raise ValueError
            for numbers in [] if "failed" in result else result.values():
                (_,) = torch.tensor(numbers).double().shape
        except (OSError, ValueError, TypeError, AttributeError, LookupError, RuntimeError):
            raise DataError(f"{path}: is damaged; delete it to have it computed again") from None
        difference = native.extension().difference_of_builds(by)
        if difference and not self.options.accept_other_version:
            raise UsageError(
                f"{path}: another build has computed this ({difference}); --accept-other-version takes it "
                "as it is, another --out or an empty folder computes it anew"
            )
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
