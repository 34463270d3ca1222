"""PyTorch's random state, of the CPU and of the device of a model; no other device's is touched."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch


def kept(device: torch.device) -> AbstractContextManager[None]:
    """As before at the end, whatever is drawn in between."""
    devices = [] if device.type == "cpu" else [device]
    return torch.random.fork_rng(devices, device_type=device.type)


def begin(device: torch.device, seed: int = 0) -> None:
    """Numbers that are drawn from now on are a function of the seed."""
    torch.default_generator.manual_seed(seed)
    if device.type != "cpu":
        module = torch.get_device_module(device)
        with module.device(device):
            module.manual_seed(seed)
