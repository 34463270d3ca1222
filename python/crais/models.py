"""A model that is in memory, as the extension takes it: functions of rows, and a description."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from crais import native
from crais.captured import Function, device_of, digest_of, other_dtype
from crais.encoders import adapted
from crais.errors import RowShapeError, UsageError
from crais.forces import MUCH_WORK, processor_has_bfloat16
from crais.captured_model import (
    CapturedModel,
    check_inputs,
    check_unchanged,
    manifest,
    taking_shapes,
)
from crais.latents import Latent, sizes_of
from crais.likelihoods import Likelihood
from crais.outputs import shape_of
from crais.random_state import OwnNumbers
from crais.reentry import keeps_state

_ROWS = {"cpu": 64}  # of a call
_ROWS_ELSEWHERE = 8192


@dataclass
class InMemory:
    """A model that is in memory."""

    functions: dict[str, Function]
    manifest: bytes  # its description, as in exported files
    device: torch.device
    shape: Sequence[int]  # of a datum, as its functions take it
    check: Callable[[], None]  # for the end of a run
    keeps_state: bool  # so that one thread alone may call its functions


def in_memory(
    *,
    shapes: Sequence[Sequence[int]],
    latent: Latent | None,
    labels: Tensor | None,
    name: str,
    force_dtype: str = "auto",
    simulate: int = 0,
    data: Tensor | None = None,
    threads_apart: bool = True,
    **parts: Any,
) -> InMemory:
    """A model as the extension takes it.

    Its check is for the end: it raises UsageError where the model is not what it was.

    Images have the first of the `shapes` that the functions take; without any, the shape of what
    the decoder returns. With `force_dtype` bfloat16, or auto where it pays, there is a function
    whose gradient is in bfloat16. `simulate` is how many images are to be drawn from the model;
    where draws are no function of uniform numbers, they are made here. `data` are a few images, as
    the likelihood takes them. Unless `threads_apart` is False, the functions are tried for state
    that they keep. `parts` are decoder, likelihood, prior, encoder, log_joint and log_prior.
    """
    decoder, encoder, likelihood = parts["decoder"], parts["encoder"], parts["likelihood"]
    functions_of = [decoder, encoder, parts["log_joint"], parts["log_prior"]]
    device = device_of(functions_of[:3], [likelihood, parts["prior"], parts["log_prior"]])
    sizes = None if latent is None else sizes_of(latent)
    with native.as_before(device), OwnNumbers():
        torch.set_num_threads(1)  # little work, and the same bits everywhere
        y = () if labels is None else (labels[:1].to(device),)
        if not shapes:
            shapes = [_shape_of(decoder, likelihood, sizes, device, y)]

        failure: Exception | None = None
        for shape in shapes:
            try:
                own = sizes or _latent_of(encoder, shape, device, y)
                model = CapturedModel(latent=own, shape=shape, labels=labels, data=data, **parts)
                model.check_shapes()
                break
            except (RuntimeError, ValueError, TypeError, IndexError) as error:
                # A fault of a model that ran says more than that it does not take a shape.
                if failure is None or _is_fault(error) and not _is_fault(failure):
                    failure = error
        else:
            assert failure is not None
            kind = other_dtype(parts.values(), torch.float32)
            if kind and isinstance(failure, (RuntimeError, RowShapeError)):
                raise UsageError(
                    f"the model's parameters are torch.{kind}; models are float32: call .float(), "
                    'or give dtype="float32", which evaluates a copy'
                ) from None
            raise failure
        with model.in_eval_mode():
            found = model.captured(name, simulate, forces=_offers_forces(model, force_dtype))
            functions, inputs = found.functions, check_inputs(found.arrays)
            encoded = () if encoder is None else model.encode(*inputs[1:])
            is_alone = threads_apart and found.known is None and any(
                keeps_state(functions[key], model.examples(key))
                for key in ("joint", "encode") if key in functions
            )  # fmt: skip
        model.check_modes()
        found.described["identity"] = digest_of(functions_of, encoded)
        found.described["batch"] = _ROWS.get(device.type, _ROWS_ELSEWHERE)

    def check() -> None:
        torch.set_num_threads(1)
        model.check_modes()
        with model.in_eval_mode():
            check_unchanged(model.joint, inputs, found.arrays["check.value"])

    described = manifest(found.arrays, found.described)
    return InMemory(functions, described, device, model.shape, check, is_alone)


def _offers_forces(model: CapturedModel, force_dtype: str) -> bool:
    """Whether there are forces in bfloat16: by `auto`, where they are faster."""
    if force_dtype == "auto":
        has_bfloat16 = processor_has_bfloat16(model.device)
        return has_bfloat16 and model.shorter_products().work >= MUCH_WORK
    return force_dtype == "bfloat16" and model.shorter_products().count > 0


def _is_fault(error: Exception) -> bool:
    return isinstance(error, UsageError) and not isinstance(error, RowShapeError)


def _latent_of(
    encoder: Function | None, shape: Sequence[int], device: torch.device, y: tuple[Tensor, ...]
) -> Sequence[int]:
    if encoder is None:
        raise UsageError(
            "give latent=D, the dimension of z, or its shape, as latent=(4, 8, 8): no encoder "
            "tells it"
        )
    x = torch.zeros(1, *shape, dtype=torch.float32, device=device)
    with torch.no_grad(), taking_shapes(shape):
        mean, _ = adapted(encoder, x, y, None)(x, *y)
    return tuple(mean.shape[1:])


def _shape_of(
    decoder: Function | None,
    likelihood: Likelihood | None,
    latent: tuple[int, ...] | None,
    device: torch.device,
    y: tuple[Tensor, ...],
) -> Sequence[int]:
    """The shape of the data that the model makes, where its output has the same shape."""
    if decoder is None or latent is None:
        raise UsageError("give image_shape=(...), the shape of one datum, and latent=D")
    with torch.no_grad():
        output = decoder(torch.zeros(1, *latent, dtype=torch.float32, device=device), *y)
    shape = shape_of(output)
    is_tensor = isinstance(output, Tensor)
    if shape is None or is_tensor and (likelihood is None or likelihood.uniforms is None):
        raise UsageError("give image_shape=(...), the shape of one datum")
    return shape
