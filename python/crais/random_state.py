"""Random states: PyTorch's on the CPU and on a model's device (no other device's), and others'."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import torch


def kept(device: torch.device) -> AbstractContextManager[None]:
    """Restores PyTorch's random state at the end, whatever is drawn in between."""
    devices = [] if device.type == "cpu" else [device]
    return torch.random.fork_rng(devices, device_type=device.type)


@contextmanager
def all_kept(device: torch.device) -> Iterator[None]:
    """Restores the states of Python's and NumPy's global generators too."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with kept(device):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


def begin(device: torch.device, seed: int = 0) -> None:
    """Seeds PyTorch, so that what is drawn from now on is a function of the seed."""
    torch.default_generator.manual_seed(seed)
    if device.type != "cpu":
        module = torch.get_device_module(device)
        with module.device(device):
            module.manual_seed(seed)
