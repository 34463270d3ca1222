"""A model that is in memory, as the extension takes it: functions of rows, and a description."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from crais.errors import UsageError
from crais.exporting import (
    ExportError,
    _check_rows,
    _in_eval_mode,
    _manifest,
    _Model,
    _modules,
    _prior_of,
    _with_gradient,
)
from crais.likelihoods import Likelihood
from crais.priors import Prior

Function = Callable[..., Any]

_ROWS = {"cpu": 64, "cuda": 8192}  # of a call


class ModelInMemory(_Model):
    """The functions of a model on its own device. Nothing is copied."""

    def _check_shapes(self) -> None:
        """Of log p(x, z) and the encoder; what the model raises passes."""
        rows = 2
        z, x = self._draw_z(rows), self._plain_x(rows)
        with torch.enable_grad():
            z.requires_grad_(True)
            value = self.log_joint(z, x)
        check_density(value, z, "log p(x, z)")
        if value.dtype != torch.float32:
            raise UsageError(f"log p(x, z) is {value.dtype}; models are float32: call .float()")
        if self.encoder is not None:
            with torch.no_grad():
                self._check_code(self.encoder(x), rows)

    def _check_code(self, code: Any, rows: int) -> None:
        wanted = (rows, self.latent)
        if (
            not isinstance(code, (tuple, list))
            or len(code) != 2
            or code[0].shape != wanted
            or code[1].shape not in (wanted, (*wanted, self.latent))
        ):
            raise UsageError(
                f"the encoder must return mean and log_var {list(wanted)}, or mean and scale_tril "
                f"{[*wanted, self.latent]}"
            )


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
    """Where the modules' parameters are; the CPU where there are none."""
    found: dict[torch.device, str] = {}
    for module in _modules(parts):
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            found.setdefault(tensor.device, f"{type(module).__name__}.{name}")
    if len(found) > 1:
        places = ", ".join(f"{name} on {device}" for device, name in found.items())
        raise UsageError(f"the model is on several devices: {places}")
    return next(iter(found), torch.device("cpu"))


def in_memory(
    *,
    image_shape: Sequence[int] | None,
    decoder: Function | None,
    likelihood: Likelihood | None,
    prior: Prior | None,
    log_prior: Function | None,
    encoder: Function | None,
    log_joint: Function | None,
    latent: int | None,
    binarisation: str | None,
    name: str,
) -> tuple[dict[str, Function], bytes, torch.device]:
    """Its functions, its description (a manifest as in exported files), and its device."""
    device = device_of([decoder, likelihood, prior, log_prior, encoder, log_joint])
    with device, torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(0)
        if image_shape is None:
            image_shape = _shape_of(decoder, likelihood, latent)
        if latent is None:
            latent = _latent_of(encoder, image_shape)
        try:
            model = ModelInMemory(
                latent=latent,
                shape=tuple(int(n) for n in image_shape),
                decoder=decoder,
                likelihood=likelihood,
                prior=_prior_of(prior, log_prior),
                encoder=encoder,
                log_joint=log_joint,
            )
            functions = model.functions()
            with _in_eval_mode(model):
                arrays = model.checks()
                _check_rows(functions["joint"], arrays["check.z"], arrays["check.x"])
                arrays |= model.prior_moments()
        except ExportError as error:
            raise UsageError(str(error)) from error.__cause__
        described = model.describe(functions, name, binarisation, None)
        described["batch"] = _ROWS.get(device.type, _ROWS["cpu"])
    return functions, _manifest(arrays, described), device


def _latent_of(encoder: Function | None, image_shape: Sequence[int]) -> int:
    if encoder is None:
        raise UsageError("give latent=D, the dimension of z: there is no encoder that says it")
    with torch.no_grad():
        code = encoder(torch.zeros(1, *image_shape))
    if not isinstance(code, (tuple, list)) or not isinstance(code[0], Tensor):
        raise UsageError("the encoder must return mean and log_var, or mean and scale_tril")
    return int(code[0].shape[-1])


def _shape_of(
    decoder: Function | None, likelihood: Likelihood | None, latent: int | None
) -> Sequence[int]:
    """Of the data that the model makes, where the output has the same shape."""
    if decoder is None or likelihood is None or latent is None:
        raise UsageError("give image_shape=(...), the shape of one datum, and latent=D")
    with torch.no_grad():
        output = decoder(torch.zeros(1, latent))
    if not isinstance(output, Tensor) or likelihood.uniforms is None:
        raise UsageError("give image_shape=(...), the shape of one datum")
    return list(output.shape[1:])
