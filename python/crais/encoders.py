"""What encoders return: distributions, mappings, one tensor of both, a draw beside them.

A probe says which, once; the rest of crais sees mean and log_var, or mean and scale_tril.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch import distributions as D

from crais.captured import Function
from crais.errors import UsageError
from crais.likelihoods import LOG_SCALES, SPREADS
from crais.outputs import MEANS, described, parts_of, plain

Code = tuple[Tensor, Tensor]

# The log variance as a function of what gives it; a root of the covariance as it is.
_SPREADS: dict[str, Callable[[Tensor], Tensor]] = {"scale_tril": lambda spread: spread} | {
    name: lambda spread, log=LOG_SCALES[kind][0]: 2 * log(spread) for name, kind in SPREADS.items()
}
_DISTRIBUTIONS = "latent_dist qz q_z dist distribution posterior".split()


def adapted(encoder: Function, x: Tensor, y: tuple[Tensor, ...], latent: int | None) -> Function:
    """The encoder as mean and log_var, of any shape, or mean and scale_tril [B, D, D]; itself where
    it is one already.

    x are rows of any numbers. Cost: two calls.
    """
    with torch.no_grad():
        output = encoder(x, *y)
        take = _reading(output, lambda: encoder(x, *y), latent)
    if take is None:
        raise UsageError(
            f"the encoder must return mean and log_var [B, D] (or maps), or mean and scale_tril "
            f"[B, D, D]; it returns {described(output)}: say which, as encoder=lambda x: "
            "(q.mean, q.log_var)"
        )
    if take is _pair:
        return encoder
    return lambda *inputs: take(encoder(*inputs))


def _pair(output: Any) -> Code:
    mean, spread = output
    return mean, spread


def _reading(output: Any, again: Callable[[], Any], latent: int | None) -> Callable[[Any], Code] | None:
    """How to get mean and log_var; None for what is not known."""
    if isinstance(output, D.Distribution):
        return _of_distribution if _is_normal(output) else None
    if isinstance(output, Tensor):
        is_even = output.dim() > 1 and output.shape[1] % 2 == 0
        is_both = is_even and latent in (None, output[0].numel() // 2)
        return (lambda both: both.chunk(2, 1)) if is_both else None
    if isinstance(output, (tuple, list)) and not hasattr(output, "_asdict"):
        normals = [i for i, part in enumerate(output) if isinstance(part, D.Distribution)]
        if len(normals) == 1 and _is_normal(output[normals[0]]):  # beside a draw of it
            return lambda code: _of_distribution(code[normals[0]])
        return _of_tuple(output, again)
    parts = parts_of(output)
    for name in _DISTRIBUTIONS:
        if name in parts:
            inner = _reading(parts[name], lambda: parts_of(again())[name], latent)
            return None if inner is None else lambda code: inner(parts_of(code)[name])
    mean = next((name for name in MEANS if isinstance(parts.get(name), Tensor)), None)
    spread = next((name for name in _SPREADS if isinstance(parts.get(name), Tensor)), None)
    if mean is None or spread is None:
        return None
    log_var = _SPREADS[spread]
    return lambda code: (parts_of(code)[mean], log_var(parts_of(code)[spread]))


def _of_tuple(output: Any, again: Callable[[], Any]) -> Callable[[Any], Code] | None:
    """Two tensors, or three of which one is a draw: it differs from call to call, or is the mean."""
    if len(output) == 2 and all(isinstance(part, Tensor) for part in output):
        return _pair
    if len(output) == 1:
        inner = _reading(output[0], lambda: again()[0], None)
        return None if inner is None else lambda code: inner(code[0])
    if len(output) != 3 or len({getattr(part, "shape", None) for part in output}) != 1:
        return None
    drawn = [i for i, (one, two) in enumerate(zip(output, again())) if not torch.equal(one, two)]
    if not drawn:
        drawn = [i for i in (0, 2) if torch.equal(output[i], output[1 if i == 0 else 0])][:1]
    if len(drawn) != 1:
        return None
    mean, log_var = (i for i in range(3) if i != drawn[0])
    return lambda code: (code[mean], code[log_var])


def _is_normal(output: D.Distribution) -> bool:
    return isinstance(plain(output), (D.Normal, D.MultivariateNormal))


def _of_distribution(output: D.Distribution) -> Code:
    normal: Any = plain(output)
    if isinstance(normal, D.MultivariateNormal):
        return normal.loc, normal.scale_tril
    return normal.loc, 2 * normal.scale.log()
