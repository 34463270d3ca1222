"""Flows of other packages as `crais.Flow` takes them: e and z [B, D], each with a log-determinant.

They are told by what they can do; no package is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributions as D

Moved = tuple[Tensor, Tensor]  # points [B, D], and log |det| of the map that moved them [B]


def as_pair(module: Any) -> nn.Module | None:
    """A module with forward(e) and inverse(z), over normal numbers; None for what is no flow."""
    if hasattr(module, "forward_and_log_det") and _is_normal(getattr(module, "q0", None)):
        return _Normflows(module)
    if isinstance(module, nn.Module) and hasattr(module, "transform") and hasattr(module, "base"):
        made = _called(module)
        if isinstance(made, D.Distribution) and hasattr(made, "transform"):
            return _Zuko(module) if _normal_base(made) is not None else None
    return None


def sampler_of(module: Any) -> Any:
    """What has `log_prob(z)` and `sample(size)`, as a distribution of PyTorch's has; else None."""
    made = _called(module) if not hasattr(module, "log_prob") else module
    if not callable(getattr(made, "log_prob", None)) or not callable(getattr(made, "sample", None)):
        return None
    return made if isinstance(made, D.Distribution) else _Sampler(made)


class _Affine(nn.Module):
    """A flow whose base is a normal of its own, as one over standard normal numbers."""

    def base(self) -> Moved:
        """Mean and standard deviation, [1, D] or [D]."""
        raise NotImplementedError

    def moved(self, e: Tensor) -> Moved:
        raise NotImplementedError

    def moved_back(self, z: Tensor) -> Moved:
        raise NotImplementedError

    def forward(self, e: Tensor) -> Moved:
        loc, scale = self.base()
        z, log_det = self.moved(loc + scale * e)
        return z, _of_rows(log_det) + scale.log().sum()

    def inverse(self, z: Tensor) -> Moved:
        loc, scale = self.base()
        e, log_det = self.moved_back(z)
        return (e - loc) / scale, _of_rows(log_det) - scale.log().sum()


class _Zuko(_Affine):
    """zuko.flows: a module that makes a distribution when it is called."""

    def __init__(self, flow: Any) -> None:
        super().__init__()
        self.flow = flow

    def base(self) -> Moved:
        normal: Any = _normal_base(self.flow())
        return normal.loc, normal.scale

    def moved(self, e: Tensor) -> Moved:
        found: Moved = self.flow().transform.inv.call_and_ladj(e)
        return found

    def moved_back(self, z: Tensor) -> Moved:
        found: Moved = self.flow().transform.call_and_ladj(z)
        return found


class _Normflows(_Affine):
    """normflows.NormalizingFlow over a DiagGaussian, whose z may have any shape."""

    def __init__(self, flow: Any) -> None:
        super().__init__()
        self.flow = flow

    def base(self) -> Moved:
        q0 = self.flow.q0
        return q0.loc.flatten(), q0.log_scale.flatten().exp()

    def moved(self, e: Tensor) -> Moved:
        z, log_det = self.flow.forward_and_log_det(self._shaped(e))
        return z.flatten(1), log_det

    def moved_back(self, z: Tensor) -> Moved:
        e, log_det = self.flow.inverse_and_log_det(self._shaped(z))
        return e.flatten(1), log_det

    def _shaped(self, rows: Tensor) -> Tensor:
        return rows.reshape(-1, *self.flow.q0.loc.shape[1:])


class _Sampler(nn.Module):
    """A module with `log_prob(z)`, and `sample(n)` that may give log p beside z."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def log_prob(self, z: Tensor) -> Tensor:
        found: Tensor = self.module.log_prob(z)
        return found

    def sample(self, size: torch.Size) -> Tensor:
        found = self.module.sample(size[0])
        drawn: Tensor = found if isinstance(found, Tensor) else found[0]
        return drawn


def _is_normal(q0: Any) -> bool:
    return all(isinstance(getattr(q0, name, None), Tensor) for name in ("loc", "log_scale"))


def _normal_base(made: Any) -> D.Normal | None:
    base = made.base
    while isinstance(base, D.Independent):
        base = base.base_dist
    return base if type(base) is D.Normal else None


def _called(module: Callable[[], Any]) -> Any:
    """What it makes of no input; None where it wants one."""
    try:
        return module()
    except Exception:  # whatever a module raises that takes something
        return None


def _of_rows(log_det: Tensor) -> Tensor:
    return log_det.flatten(1).sum(1) if log_det.dim() > 1 else log_det
