"""A model that is in memory, as the extension takes it: functions of rows, and a description."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from crais import native
from crais.captured import Function, Latent, bare, device_of, digest_of, in_eval_mode, modules_of, other_dtype, sizes_of
from crais.captured_model import CapturedModel, check_inputs, check_unchanged, manifest, taking_shapes
from crais.errors import RowShapeError, UsageError
from crais.forces import MUCH_WORK, processor_has_bfloat16
from crais.likelihoods import Likelihood, LocationScale, as_likelihood
from crais.outputs import adapted_encoder, shape_of
from crais.priors import adapted as adapted_prior
from crais.random_state import OwnNumbers
from crais.reentry import keeps_state

_LATENTS = ("latent_dim", "latent_size", "latent_dims", "z_dim", "n_latent")  # of other libraries
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
    takes_reals: bool  # any number can be a pixel


def captured_model(
    *,
    shapes: Sequence[Sequence[int]],
    latent: Latent | None,
    labels: Tensor | None,
    data: Tensor | None = None,
    **parts: Any,
) -> CapturedModel:
    """The model with the first of the `shapes` of a datum that its functions take.

    Without any, the shape is that of what the decoder returns, and without `latent` the encoder tells it. `data` are a
    few images, as the likelihood takes them. `parts` are decoder, likelihood, prior, encoder, log_joint and log_prior.
    """
    decoder, encoder, likelihood = parts["decoder"], parts["encoder"], parts["likelihood"]
    device = device_of([decoder, encoder, parts["log_joint"]], [likelihood, parts["prior"], parts["log_prior"]])
    sizes = None if latent is None else sizes_of(latent)
    y = () if labels is None else (labels[:1].to(device),)
    if not shapes:
        sizes = sizes or _latent_taken(decoder, device, y)
        shapes = [_shape_of(decoder, likelihood, sizes, device, y)]
    failure: Exception | None = None
    for shape in shapes:
        try:
            own = sizes or _latent_of(encoder, shape, device, y)
            model = CapturedModel(latent=own, shape=shape, labels=labels, data=data, **parts)
            model.check_shapes()
            return model
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            # A fault of a model that ran says more than that it does not take a shape.
            if failure is None or _is_fault(error) and not _is_fault(failure):
                failure = error
    assert failure is not None
    kind = other_dtype(parts.values(), torch.float32)
    if kind and isinstance(failure, (RuntimeError, RowShapeError)):
        raise UsageError(
            f"the model's parameters are torch.{kind}; models are float32: call .float(), "
            'or give dtype="float32", which evaluates a copy'
        ) from None
    raise failure


def in_memory(
    *, name: str, force_dtype: str = "auto", simulate: int = 0, threads_apart: bool = True, **model_of: Any
) -> InMemory:
    """The model of the arguments of `captured_model`, as the extension takes it.

    Its check is for the end: it raises UsageError where the model is not what it was. With `force_dtype` bfloat16, or
    auto where it pays, there is a function whose gradient is in bfloat16. `simulate` is how many images are to be drawn
    from the model; where draws are no function of uniform numbers, they are made here. Unless `threads_apart` is False,
    the functions are tried for state that they keep.
    """
    encoder = model_of["encoder"]
    functions_of = [model_of["decoder"], encoder, model_of["log_joint"], model_of["log_prior"]]
    device = device_of(functions_of[:3], [model_of[part] for part in ("likelihood", "prior", "log_prior")])
    with native.as_before(device), OwnNumbers():
        torch.set_num_threads(1)  # little work, and the same bits everywhere
        model = captured_model(**model_of)
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
    takes_reals = isinstance(model.likelihood, LocationScale) and model.likelihood.step is None
    return InMemory(functions, described, device, model.shape, check, is_alone, takes_reals)


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
        raise UsageError("give latent=D, the dimension of z, or its shape, as latent=(4, 8, 8): no encoder tells it")
    x = torch.zeros(1, *shape, dtype=torch.float32, device=device)
    with torch.no_grad(), taking_shapes(shape, None, *y):
        mean, _ = adapted_encoder(encoder, x, y, None)(x, *y)
    return tuple(mean.shape[1:])


def _latent_taken(decoder: Function | None, device: torch.device, y: tuple[Tensor, ...]) -> tuple[int, ...] | None:
    """The one number of inputs, of all Linear layers, that a decoder takes for latents."""
    if decoder is None:
        return None
    parts, taken = [one for part in modules_of([decoder]) for one in part.modules()], []
    for size in {part.in_features for part in parts if isinstance(part, nn.Linear)}:
        with contextlib.suppress(Exception), torch.no_grad():  # what a model raises
            decoder(torch.zeros(1, size, dtype=torch.float32, device=device), *y)
            taken.append(size)
    return (taken[0],) if len(taken) == 1 else None


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


def parts_of(model: Any, arguments: dict[str, Any], latent: Latent | None) -> dict[str, Any]:
    """The functions of a module, where they are not given."""
    parts = dict(arguments)
    names = {"prior": ("prior",), "encoder": ("encode", "encoder")}
    if parts["log_joint"] is None:
        names |= {"decoder": ("decode", "decoder"), "likelihood": ("likelihood",)}
    for part in [part for part in names if parts[part] is None]:
        parts[part] = next((getattr(model, name) for name in names[part] if hasattr(model, name)), None)
    if parts["log_joint"] is None:
        if parts["decoder"] is None or parts["likelihood"] is None:
            parts["log_joint"] = getattr(model, "log_joint", None)
        if parts["log_joint"] is None and parts["decoder"] is None:
            parts["decoder"] = _decoder_alone(model, latent)
    if parts["log_joint"] is not None and arguments["decoder"] is None:
        parts["decoder"] = parts["likelihood"] = None
    for name in ("decoder", "encoder", "log_joint"):
        parts[name] = bare(parts[name])
        if parts[name] is not None and not callable(parts[name]):
            raise UsageError(f"{name} must be a function")
    for name, adapt in (("likelihood", as_likelihood), ("prior", adapted_prior)):
        parts[name] = None if parts[name] is None else adapt(parts[name])
    return parts


def _decoder_alone(model: Any, latent: Latent | None) -> nn.Module:
    """A module without methods, if it takes z of the size that the user gives."""
    if isinstance(model, nn.Module) and latent is not None:
        z = next(model.parameters(), torch.zeros(0)).new_zeros(1, *sizes_of(latent))
        with contextlib.suppress(Exception), torch.no_grad(), in_eval_mode([model]):  # what a model raises
            model(z)
            return model
    raise UsageError("the model has neither decode(z) nor log_joint(z, x): give decoder= or log_joint=")


def unwrapped(model: Any) -> Any:
    """What DataParallel, torch.compile, Lightning or another module of one's own is around."""
    is_model = lambda one: any(hasattr(one, name) for name in ("decode", "decoder", "log_joint"))
    if is_model(model) or not isinstance(model, nn.Module):
        return model
    inner = [one for child in model.children() if is_model(one := unwrapped(child))]
    return inner[0] if len(inner) == 1 else model


def own_latent(model: Any, encoder: Function | None) -> Latent | None:
    """As the model says it; by other libraries' names where no encoder does."""
    for name in ("latent",) if encoder is not None else ("latent", *_LATENTS):
        value = getattr(model, name, None)
        if isinstance(value, int) or isinstance(value, (tuple, list, torch.Size)) and value:
            return value
    return None
