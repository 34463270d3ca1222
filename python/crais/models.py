"""A model that is in memory, as the extension takes it: functions of rows, and a description."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from crais import native
from crais.errors import UsageError
from crais.exporting import (
    _VALUE_TOLERANCE,
    ExportError,
    _check_inputs,
    _check_rows,
    _device_of,
    _differ,
    _in_eval_mode,
    _manifest,
    _Model,
    _prior_of,
)
from crais.likelihoods import Likelihood
from crais.mlp import MlpVae
from crais.priors import Prior

Function = Callable[..., Any]

_ROWS = {"cpu": 64, "cuda": 8192}  # of a call


class ModelInMemory(_Model):
    """The functions of a model on its own device. Nothing is copied."""

    def _check_shapes(self) -> None:
        """Of log p(x, z) and the encoder; what the model raises passes."""
        rows = 2
        z, x, y = self._draw_z(rows), self._plain_x(rows), self._draw_y(rows)
        with torch.enable_grad():
            value = self.log_joint(z.requires_grad_(True), x, *y)
        check_density(value, z, "log p(x, z)")
        if value.dtype != torch.float32:
            raise UsageError(f"log p(x, z) is {value.dtype}; models are float32: call .float()")
        if self.encoder is not None:
            self._check_encoder(x, *y)


def check_density(value: Any, z: Tensor, what: str) -> None:
    """`value` must be [B], and a differentiable function of z [B, D]."""
    rows = z.shape[0]
    if not isinstance(value, Tensor) or value.shape != (rows,):
        has = list(value.shape) if isinstance(value, Tensor) else f"a {type(value).__name__}"
        raise UsageError(f"{what} must have one entry a row, [{rows}]; it has {has}")
    if not value.is_floating_point():
        raise UsageError(f"{what} is {value.dtype}; it must be floating")
    if z.requires_grad and not value.requires_grad:
        raise UsageError(
            f"{what} is no differentiable function of z: is there a .detach(), a no_grad, NumPy?"
        )


def device_of(parts: Sequence[Any]) -> torch.device:
    """Where the model's tensors are; the CPU where there are none."""
    try:
        return _device_of(parts)
    except ExportError as error:
        raise UsageError(str(error)) from None


def in_memory(
    *,
    shapes: Sequence[Sequence[int]],
    latent: int | None,
    labels: Tensor | None,
    name: str,
    prior: Prior | None,
    log_prior: Function | None,
    **parts: Any,
) -> tuple[dict[str, Function], bytes, torch.device]:
    """Its functions, its description (a manifest as in exported files), and its device.

    Images have the first of the `shapes` that the functions take; without any, the shape of what
    the decoder returns. `parts` are decoder, likelihood, encoder and log_joint, as `export` takes them.
    """
    decoder, encoder = parts["decoder"], parts["encoder"]
    device = device_of([*parts.values(), prior, log_prior])
    with native.as_before(device):
        torch.manual_seed(0)
        torch.set_num_threads(1)  # little work, and the same bits everywhere
        y = () if labels is None else (labels[:1].to(device),)
        if not shapes:
            shapes = [_shape_of(decoder, parts["likelihood"], latent, device, y)]

        def model_of(shape: Sequence[int]) -> ModelInMemory:
            return ModelInMemory(
                latent=latent or _latent_of(encoder, shape, device, y),
                shape=tuple(int(n) for n in shape),
                prior=_prior_of(prior, log_prior),
                labels=labels,
                **parts,
            )

        try:
            model = _first_that_works(model_of, shapes)
            functions = model.functions()
            with _in_eval_mode(model):
                arrays = model.checks()
                _check_rows(functions["joint"], _check_inputs(arrays))
                arrays |= model.prior_moments()
        except ExportError as error:
            raise UsageError(str(error)) from error.__cause__
        described = model.describe(functions, name, None, None)
        described["batch"] = _ROWS[device.type]
        mlp = model.mlp()
        if mlp is not None and _computes(mlp, arrays):
            described["mlp"] = mlp.describe()
            arrays |= mlp.tensors()
    return functions, _manifest(arrays, described), device


def _computes(mlp: MlpVae, arrays: dict[str, Tensor]) -> bool:
    """True if the weights have the model's own values: else PyTorch computes it."""
    with torch.no_grad():
        found = mlp.log_joint(arrays["check.z"], arrays["check.x"])
    return not _differ(found, arrays["check.value"], _VALUE_TOLERANCE)


def _first_that_works(
    make: Callable[[Sequence[int]], ModelInMemory], shapes: Sequence[Sequence[int]]
) -> ModelInMemory:
    """Raises what the first shape raised where none works."""
    failure: Exception | None = None
    for shape in shapes:
        try:
            return make(shape)
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            failure = failure or error
    assert failure is not None
    raise failure


def _latent_of(
    encoder: Function | None, shape: Sequence[int], device: torch.device, y: tuple[Tensor, ...]
) -> int:
    if encoder is None:
        raise UsageError("give latent=D, the dimension of z: there is no encoder that says it")
    with torch.no_grad():
        code = encoder(torch.zeros(1, *shape, device=device), *y)
    if not isinstance(code, (tuple, list)) or not isinstance(code[0], Tensor):
        raise UsageError("the encoder must return mean and log_var, or mean and scale_tril")
    return int(code[0].shape[-1])


def _shape_of(
    decoder: Function | None,
    likelihood: Likelihood | None,
    latent: int | None,
    device: torch.device,
    y: tuple[Tensor, ...],
) -> Sequence[int]:
    """Of the data that the model makes, where the output has the same shape."""
    if decoder is None or likelihood is None or latent is None:
        raise UsageError("give image_shape=(...), the shape of one datum, and latent=D")
    with torch.no_grad():
        output = decoder(torch.zeros(1, latent, device=device), *y)
    if not isinstance(output, Tensor) or likelihood.uniforms is None:
        raise UsageError("give image_shape=(...), the shape of one datum")
    return list(output.shape[1:])
