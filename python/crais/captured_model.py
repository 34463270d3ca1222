"""A latent model as crais takes it: functions of rows, and what is known beside them.

`crais.exporting` writes it to a file, `crais.models` hands it to the extension.
"""

from __future__ import annotations

import contextlib
import json
import math
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from crais import safetensors
from crais.captured import Function, Latent, bare, check_modes, device_of, in_eval_mode, on_device, shaped, sizes_of
from crais.coordinates import freed
from crais.errors import RowShapeError, UsageError, first_line
from crais.forces import ShorterProducts
from crais.gradients import with_gradient
from crais.layers import KnownModel, recognise
from crais.likelihoods import Likelihood, Seen
from crais.outputs import Distribution, OfDecoder, adapted, adapted_encoder, unvalidated
from crais.priors import Hierarchical, Prior, StandardNormal
from crais.priors import adapted as adapted_prior
from crais.random_state import OwnNumbers

FORMAT_VERSION = 1
VALUE_TOLERANCE = 1e-4  # relative, of two ways to compute a model
GRAD_TOLERANCE = 1e-3
SAME_TOLERANCE = 1e-5  # of one way, early and late: compilers may fuse what is called often

# Of the functions that a reader calls: latents, a datum, uniform numbers, labels.
_INPUTS = {"joint": "zxy", "joint_bfloat16": "zxy", "encode": "xy", "output": "zy", "prior": "z", "simulate": "zuy"}
_CHECK_ROWS = 4
_DRAWN_ROWS = 64  # that are drawn at once
_DIRECTIONS = 3  # random ones, along which a density is looked at
_DIFFERENCES = (0.02, 0.04)  # half the distances of difference quotients
_FAR = (1e2, 1e4, 1e6, 1e8)  # from the origin
_OUTPUT_ROWS = 16  # so that logits of a few pixels do not all lie in [0, 1] by chance


@dataclass
class Captured:
    """What a reader gets."""

    functions: dict[str, Function]
    arrays: dict[str, Tensor]
    described: dict[str, Any]
    known: KnownModel | None  # what crais can compute of it from weights alone


class CapturedModel:
    """The functions that crais calls, and what is known beside them.

    `check_shapes` comes first, then `checks`. Both raise UsageError; the second raises what the model raises, too.
    """

    def __init__(
        self,
        *,
        latent: Latent,
        shape: Latent,
        decoder: Function | None,
        likelihood: Likelihood | None,
        prior: Any,
        encoder: Function | None,
        log_joint: Function | None,
        log_prior: Function | None = None,
        labels: Tensor | None = None,
        data: Tensor | None = None,
        missing: bool = False,
    ) -> None:
        """`data` [N, ...] are examples of x, for a log_joint, whose support nothing says; with `missing`
        the likelihood leaves out numbers of x that are NaN."""
        sizes, shape = sizes_of(latent), sizes_of(shape, "image_shape")
        if decoder is not None and likelihood is None:
            likelihood = OfDecoder()
        if (decoder is None) != (likelihood is None) or (decoder is None) == (log_joint is None):
            raise UsageError("give a decoder with its likelihood, or a log_joint")
        self.sizes, self.latent, self.shape = sizes, math.prod(sizes), shape
        decoder, encoder, log_joint = bare(decoder), bare(encoder), bare(log_joint)
        decoder, log_joint, log_prior = (
            None if part is None else shaped(part, sizes) for part in (decoder, log_joint, log_prior)
        )
        # Users forget to move likelihoods and priors.
        own_prior = prior_of(prior, log_prior)
        if decoder is not None and (free := freed(own_prior, self.latent)):
            bounded, encoder = decoder, None  # whose normals are of z, not of e
            own_prior, point = free
            decoder = lambda e, *y: bounded(point(e), *y)
        self.device = device_of([decoder, encoder, log_joint], [likelihood, own_prior])
        self.prior: Any = on_device(own_prior, self.device)
        # None where they are not given: then no function asks for them.
        self.decoder: Any = decoder
        self.likelihood: Any = on_device(likelihood, self.device)
        self.encoder: Any = encoder
        self._log_joint: Any = log_joint
        self.labels = _checked_labels(labels)
        self._missing = missing
        self._data = data.reshape(-1, *shape) if likelihood is None and data is not None else None
        self.parts = [decoder, self.likelihood, self.prior, encoder, log_joint]
        self.warnings: list[str] = []  # why numbers may not mean what one thinks, of `checks`
        self.check_modes = check_modes(self.parts)

    def in_eval_mode(self) -> AbstractContextManager[None]:
        """Keeps prior and likelihood in eval mode: users forget these, and it changes no value."""
        return in_eval_mode(part for part in (self.prior, self.likelihood) if part is not None)

    # y is the labels [B, ...] of a conditional model, and not there for others.

    def log_joint(self, z: Tensor, x: Tensor, *y: Tensor) -> Tensor:
        with unvalidated():
            if self._log_joint is not None:
                return self._log_joint(z, x, *y)
            return self.prior.log_prob(z) + self.likelihood.log_prob(x, self.decoder(z, *y))

    def joint(self, z: Tensor, x: Tensor, *y: Tensor) -> tuple[Tensor, Tensor]:
        return joint_of(self.log_joint)(z, x, *y)

    def joint_bfloat16(self, z: Tensor, x: Tensor, *y: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the value of `joint` and a gradient whose products are in bfloat16."""
        return with_gradient(lambda z: self.log_joint(z, x, *y), z, ShorterProducts())

    def shorter_products(self) -> ShorterProducts:
        """Counts the gradient's products that are worth computing in bfloat16."""
        products = ShorterProducts()
        z, *others = self.examples("joint")(2)
        with_gradient(lambda z: self.log_joint(z, *others), z, products)
        return products

    def encode(self, x: Tensor, *y: Tensor) -> tuple[Tensor, Tensor]:
        """Rows, also of maps; a root of the covariance [B, D, D] stays as it is."""
        mean, spread = self.encoder(x.nan_to_num() if self._missing else x, *y)
        return mean.flatten(1), spread.flatten(1) if spread.shape == mean.shape else spread

    def output(self, z: Tensor, *y: Tensor) -> tuple[Tensor, Tensor]:
        """The decoder's output [B, M] and its Fisher weights [B, M], in one row each."""
        output = self.decoder(z, *y)
        return _rows(output), _rows(self.likelihood.fisher(output))

    def simulate(self, e: Tensor, u: Tensor, *y: Tensor) -> tuple[Tensor, Tensor]:
        """A latent and a datum as functions of normal and uniform numbers: exact draws."""
        own = self.prior.uniforms
        z = self.prior.sample(e, u[:, :own])
        rest = u[:, own:].reshape(u.shape[0], self.likelihood.uniforms, *self.shape)
        return z, self.likelihood.sample(self.decoder(z, *y), rest)

    def functions(self, forces: bool = False) -> dict[str, Function]:
        """What a reader calls; with `joint_bfloat16` where forces are asked for."""
        functions: dict[str, Function] = {"joint": self.joint}
        if forces:
            functions["joint_bfloat16"] = self.joint_bfloat16
        if self.encoder is not None:
            functions["encode"] = self.encode
        if self.likelihood is None:
            return functions
        if self.likelihood.has("fisher"):
            functions["output"] = self.output
        if not isinstance(self.prior, StandardNormal):
            functions["prior"] = lambda z: with_gradient(self.prior.log_prob, z)
        e, u = (
            torch.zeros(1, count, dtype=torch.float32, device=self.device)
            for count in (self.latent, self.prior.uniforms)
        )
        if self.likelihood.uniforms is not None and _works(lambda: self.prior.sample(e, u)):
            functions["simulate"] = self.simulate
        return functions

    def captured(
        self, name: str, simulate: int, *, forces: bool = False, fused: bool = True, binarisation: str | None = None
    ) -> Captured:
        """All of it, with `simulate` pairs where no function draws; checked, as by `checks`."""
        functions, arrays = self.functions(forces), self.checks(forces)
        if "simulate" not in functions:
            arrays |= self.pairs(simulate)
        described, known = self.describe(functions, name, binarisation), None
        if fused and self.decoder is not None and self.labels is None:
            z, x = self.draw_z(2), self.plain_x(2)
            known = recognise(self.decoder, self.likelihood, self.prior, self.encoder, z, x)
        if known is not None:
            described[known.key] = known.describe()
            arrays |= known.tensors()
        return Captured(functions, arrays, described, known)

    def num_uniforms(self) -> int:
        return self.prior.uniforms + self.likelihood.uniforms * math.prod(self.shape)

    def examples(self, key: str) -> Callable[[int], tuple[Tensor, ...]]:
        """Inputs of the function called `key`, of so many rows."""
        draws: dict[str, Callable[[int], tuple[Tensor, ...]]] = {
            "z": lambda rows: (self.draw_z(rows),),
            "x": lambda rows: (self.plain_x(rows),),
            "u": lambda rows: (torch.rand(rows, self.num_uniforms(), dtype=torch.float32),),
            "y": self.draw_y,
        }

        def inputs(rows: int) -> tuple[Tensor, ...]:
            with OwnNumbers(rows):
                return tuple(one.to(self.device) for name in _INPUTS[key] for one in draws[name](rows))

        return inputs

    # Numbers are drawn on the CPU, so that they are the same on every device.

    def draw_z(self, rows: int) -> Tensor:
        return torch.randn(rows, self.latent, dtype=torch.float32).to(self.device)

    def draw_y(self, rows: int) -> tuple[Tensor, ...]:
        """Labels, each one of the examples; nothing where the model has none."""
        if self.labels is None:
            return ()
        return (self.labels[torch.randint(len(self.labels), (rows,))].to(self.device),)

    def plain_x(self, rows: int) -> Tensor:
        """Data in the support, of no distribution."""
        if self._data is not None:
            return self._data[torch.arange(rows) % len(self._data)].to(self.device)
        x = torch.rand(rows, *self.shape, dtype=torch.float32).to(self.device)
        if isinstance(self.likelihood, Distribution):  # whose support may be no box
            with contextlib.suppress(NotImplementedError), torch.no_grad(), OwnNumbers(rows):
                output = self.decoder(self.draw_z(rows), *self.draw_y(rows))
                return self.likelihood.draw(output, x.shape).float()
        if self.likelihood is None or self.likelihood.step is None:
            return x
        low, high, step = self.likelihood.low, self.likelihood.high, self.likelihood.step
        if not math.isfinite(high - low):
            return torch.floor(x / step) * step
        return low + torch.floor(x * (round((high - low) / step) + 1)) * step

    def draw(self, rows: int) -> tuple[Tensor, ...] | None:
        """Latents, data that the model makes, and their labels; None if it has no way."""
        if self.likelihood is None or not _works(lambda: self.prior.draw(1, self.latent)):
            return None
        if self.likelihood.uniforms is None and not self.likelihood.has("draw"):
            return None
        with torch.no_grad():
            z, y = self.prior.draw(rows, self.latent).to(self.device), self.draw_y(rows)
            return z, self.likelihood.draw(self.decoder(z, *y), (rows, *self.shape)), *y

    def pairs(self, count: int) -> dict[str, Tensor]:
        """So many exact draws (x, z), for certificates; nothing where the model has no way."""
        drawn = []
        for first in range(0, count, _DRAWN_ROWS):
            rows = self.draw(min(_DRAWN_ROWS, count - first))
            if rows is None:
                return {}
            drawn.append(rows)
        columns = [torch.cat(column) for column in zip(*drawn)]
        columns[:2] = [column.float() for column in columns[:2]]
        return dict(zip(("pairs.z", "pairs.x", "pairs.y"), columns))

    def checks(self, forces: bool = False) -> dict[str, Tensor]:
        """Inputs with what eager PyTorch makes of them, and the prior's moments.

        Raises where a value is not finite, or depends on more than its own row.
        """
        if self.likelihood is not None and self.likelihood.has("check"):
            with torch.no_grad():
                output = self.decoder(self.draw_z(_OUTPUT_ROWS), *self.draw_y(_OUTPUT_ROWS))
            self.warnings += filter(None, [self.likelihood.check(output)])
        z, x, y = self.draw_z(_CHECK_ROWS), self.plain_x(_CHECK_ROWS), self.draw_y(_CHECK_ROWS)
        drawn = self.draw(_CHECK_ROWS)
        if drawn is not None:
            x, y = drawn[1].to(torch.float32), drawn[2:]
        value, grad = self.joint(z, x, *y)
        for what, numbers in (("log p(x, z)", value), ("its gradient", grad)):
            if not bool(torch.isfinite(numbers).all()):
                raise UsageError(f"{what} is not finite at z ~ N(0, I): {numbers.flatten()[:4].tolist()}")
        arrays = {"check.z": z, "check.x": x, "check.value": value, "check.grad": grad}
        if self.labels is not None:
            arrays |= {"check.y": y[0], "labels": self.labels}
        check_rows(self.joint, check_inputs(arrays))
        if self._log_joint is not None:
            check_bounded(lambda z: self._log_joint(z, x, *y), z, "log p(x, z)")
        elif not isinstance(self.prior, StandardNormal):
            check_bounded(self.prior.log_prob, z, "log p(z)")
        _check_slopes(self.log_joint, arrays)
        if forces:
            arrays["check.grad_bfloat16"] = self.joint_bfloat16(z, x, *y)[1]
        if self.likelihood is not None and not isinstance(self.prior, StandardNormal):
            with torch.no_grad():
                loc, scale_tril = self.prior.moments(self.latent)
            arrays |= {"prior.loc": loc.float(), "prior.scale_tril": scale_tril.float()}
        return arrays

    def describe(self, functions: dict[str, Function], name: str, binarisation: str | None = None) -> dict[str, Any]:
        """What a reader must know of it (models/model_manifest.h)."""
        likelihood, names = self.likelihood, ["log_joint", "log_joint"]
        if likelihood is not None:
            names = [part.name or type(part).__name__ for part in (likelihood, self.prior)]
        return {
            "format": "crais-model",
            "version": FORMAT_VERSION,
            "name": name,
            "torch": torch.__version__.split("+")[0],
            "machine": platform.machine(),
            "cpu_flags": [],
            "dtype": "float32",
            "latent": self.latent,
            "data_shape": list(self.shape),
            "functions": list(functions),
            "uniforms": self.num_uniforms() if "simulate" in functions else 0,
            "likelihood": {"name": names[0]},
            "prior": {"name": names[1]},
            "low": None if likelihood is None or math.isinf(likelihood.low) else likelihood.low,
            "high": None if likelihood is None or math.isinf(likelihood.high) else likelihood.high,
            "step": None if likelihood is None else likelihood.step,
            "levels": None if likelihood is None else likelihood.levels,
            "binarisation": binarisation,
            "labels": None
            if self.labels is None
            else {"shape": list(self.labels.shape[1:]), "dtype": str(self.labels.dtype)[6:]},
            "warnings": self.warnings,
        }

    def check_shapes(self) -> None:
        """Checks the shapes of the encoder's outputs and of log p(x, z), and its gradient in z.

        Raises UsageError; RowShapeError where the model itself fails.
        """
        with unvalidated(), taking_shapes(self.shape, self.sizes, self.labels):
            rows = 2
            z, x, y = self.draw_z(rows), self.plain_x(rows), self.draw_y(rows)
            if self.decoder is not None:
                self.decoder, likelihood = adapted(self.decoder, self.likelihood, z, x, y)
                likelihood = Seen(likelihood) if self._missing else likelihood
                if likelihood is not self.likelihood:
                    self.likelihood = on_device(likelihood, self.device)
                    self.parts += [self.decoder, self.likelihood]
                    x = self.plain_x(rows)
            with torch.enable_grad():
                value = self.log_joint(z.requires_grad_(True), x, *y)
            check_density(value, z, "log p(x, z)")
            if value.dtype != torch.float32:
                raise UsageError(
                    f"log p(x, z) is {value.dtype}; models are float32: call .float(), or give "
                    'dtype="float32", which evaluates a copy'
                )
            if self.encoder is not None:
                self.encoder = adapted_encoder(self.encoder, x, y, self.latent)
                self._check_encoder(x, *y)

    def _check_encoder(self, x: Tensor, *y: Tensor) -> None:
        with torch.no_grad():
            code, again = self.encode(x, *y), self.encode(x, *y)
        wanted = (x.shape[0], self.latent)
        if code[0].shape != wanted or code[1].shape not in (wanted, (*wanted, self.latent)):
            raise UsageError(
                f"the encoder must return mean and log_var {list(wanted)}, or mean and scale_tril "
                f"{[*wanted, self.latent]}"
            )
        if not all(torch.equal(one, other) for one, other in zip(code, again)):
            raise UsageError("the encoder differs from call to call (a latent drawn inside?): return mean and log_var")


@contextlib.contextmanager
def taking_shapes(x: Sequence[int], z: Sequence[int] | None = None, y: Tensor | None = None) -> Iterator[None]:
    """What PyTorch raises where shapes do not fit becomes a RowShapeError that says which they are.

    Exceptions of a model's own classes come out as they are.
    """
    try:
        yield
    except Exception as error:
        if type(error) not in (RuntimeError, ValueError, TypeError, IndexError):
            raise
        shapes = {"z": z, "x": x, "y": None if y is None else y.shape[1:]}
        rows = " and ".join(f"{name} {['B', *of]}" for name, of in shapes.items() if of is not None).replace("'", "")
        raise RowShapeError(f"the model fails for {rows}: {first_line(error)}") from error


def check_density(value: Any, z: Tensor, what: str) -> None:
    """`value` must be [B], and a differentiable function of z [B, D]."""
    rows = z.shape[0]
    if not isinstance(value, Tensor) or value.shape != (rows,):
        has = list(value.shape) if isinstance(value, Tensor) else f"a {type(value).__name__}"
        raise UsageError(f"{what} must have one entry a row, [{rows}]; it has {has}")
    if value.is_meta or not value.is_floating_point():
        raise UsageError(f"{what} is {value.dtype} on {value.device}; it must be a floating-point tensor")
    if z.requires_grad and not value.requires_grad:
        raise UsageError(f"{what} is not a differentiable function of z: look for .detach(), no_grad or NumPy")


def check_bounded(log_density: Function, z: Tensor, what: str) -> None:
    """A log density must not rise for ever on the way out: no such density has an integral.

    The ways go through the points z [B, D]. Where the function fails far away, nothing is known.
    """
    directions = z / z.norm(dim=1, keepdim=True)
    try:
        values = torch.stack([_value(log_density, far * directions) for far in _FAR])
    except Exception:  # whatever a user's code raises at numbers that it was not made for
        return
    rises = (values[1:] > values[:-1]).all(0) & (values[-1] > values[0] + 1)
    if bool(rises.any()):
        row = int(rises.nonzero()[0])
        raise UsageError(
            f"{what} grows without bound, from {float(values[0, row]):.4g} at |z| = {_FAR[0]:.0e} to "
            f"{float(values[-1, row]):.4g} at {_FAR[-1]:.0e}: is it a loss, of the wrong sign?"
        )


def _check_slopes(log_joint: Function, arrays: dict[str, Tensor]) -> None:
    """The gradient must be that of the values, which a part that is detached from z does not have.

    Slopes along random directions stand beside differences over two distances: where these two
    differ, the values have kinks or steps there, and say nothing.
    """
    z, *others = check_inputs(arrays)
    rows, latent = z.shape
    along = torch.nn.functional.normalize(torch.randn(_DIRECTIONS, 1, latent), dim=2).to(z)
    slope = (arrays["check.grad"] * along).sum(2)
    size = arrays["check.value"].abs() + 1
    inputs = [part.repeat(_DIRECTIONS, *[1] * (part.dim() - 1)) for part in others]
    near, far = (_difference(log_joint, z, step * along, inputs) / (2 * step) for step in _DIFFERENCES)
    noise = 1e-5 * size / _DIFFERENCES[0]
    smooth = (near - far).abs() < 0.03 * far.abs() + noise
    size = torch.maximum(near.abs(), slope.abs())
    apart = smooth & ((near - slope).abs() > 0.05 * size + noise)
    if 2 * int(smooth.sum()) > smooth.numel() and 2 * int(apart.sum()) > int(smooth.sum()):
        i = int((apart * size).argmax())
        raise UsageError(
            f"the gradient of log p(x, z) is not that of its values: a slope of {float(slope.flatten()[i]):.4g}, by "
            f"differences {float(near.flatten()[i]):.4g}: is a part detached from z, by .detach(), a no_grad, NumPy?"
        )


def _difference(log_joint: Function, z: Tensor, steps: Tensor, inputs: list[Tensor]) -> Tensor:
    """log p(x, z + step) - log p(x, z - step) [steps, rows]."""
    up, down = (_value(lambda z: log_joint(z, *inputs), (z + step).flatten(0, 1)) for step in (steps, -steps))
    return (up - down).view(len(steps), len(z))


def _value(function: Function, z: Tensor) -> Tensor:
    """The function's value at z [B, D], which asks for a gradient as in a run; without its graph."""
    with torch.enable_grad():
        value: Tensor = function(z.detach().requires_grad_(True))
    return value.detach()


def joint_of(log_joint: Function) -> Function:
    """(z, x, labels) -> log p(x, z) with its gradient with respect to z."""

    def joint(z: Tensor, x: Tensor, *y: Tensor) -> tuple[Tensor, Tensor]:
        return with_gradient(lambda z: log_joint(z, x, *y), z)

    return joint


def _works(draw: Callable[[], Any]) -> bool:
    try:
        draw()
    except NotImplementedError:
        return False
    return True


def _rows(output: Any) -> Tensor:
    """A tensor, or several, as [B, M]."""
    parts = output if isinstance(output, (tuple, list)) else (output,)
    return torch.cat([part.reshape(part.shape[0], -1) for part in parts], 1)


def prior_of(prior: Any, log_prior: Function | None) -> Prior:
    if prior is not None and log_prior is not None:
        raise UsageError("give prior or log_prior, not both")
    if log_prior is not None:
        return Hierarchical(log_prior)
    return StandardNormal() if prior is None else adapted_prior(prior)


def check_inputs(arrays: dict[str, Tensor]) -> list[Tensor]:
    """The stored inputs of `joint`."""
    return [arrays[key] for key in ("check.z", "check.x", "check.y") if key in arrays]


def _checked_labels(labels: Tensor | None) -> Tensor | None:
    if labels is None:
        return None
    if not isinstance(labels, Tensor) or labels.dim() < 1 or len(labels) < 1:
        raise UsageError("labels must be a tensor [K, ...] of examples of y")
    if labels.dtype not in (torch.float32, torch.int64):
        raise UsageError(f"labels must be float32 or int64; they are {labels.dtype}")
    return labels.detach().cpu()


def check_rows(joint: Function, inputs: Sequence[Tensor], what: str = "log p(x, z)") -> None:
    """Every row is a function of its own inputs alone, and the same at every call."""
    value, grad = joint(*inputs)
    again = joint(*inputs)
    if not torch.equal(value, again[0]):
        raise UsageError(f"{what} differs from call to call: is dropout on, or a latent drawn inside?")
    rows = inputs[0].shape[0]
    for i in range(rows):
        alone = joint(*(rows_of[i : i + 1] for rows_of in inputs))
        if differ(value[i : i + 1], alone[0], VALUE_TOLERANCE) or differ(grad[i : i + 1], alone[1], GRAD_TOLERANCE):
            raise UsageError(
                f"a row's {what} depends on the other rows of its batch ({value[i]:.4f} among "
                f"{rows}, {alone[0][0]:.4f} alone): a BatchNorm in training mode does so, and a "
                "function of one row, which torch.vmap would make one of many"
            )


def check_unchanged(joint: Function, inputs: Sequence[Tensor], value: Tensor, what: str = "log p(x, z)") -> None:
    """At the end of a run: stored points have the values that they had at its beginning."""
    now = joint(*inputs)[0]
    if now.dtype == value.dtype and not differ(now, value, SAME_TOLERANCE):
        return
    row = int((now.to(value.dtype) - value).abs().nan_to_num(math.inf).argmax())
    raise UsageError(
        f"{what} has changed while it was evaluated, at a stored point from {value[row]:.6g} to {now[row]:.6g} "
        f"({now.dtype}): the estimates mix two models; delete those in a folder"
    )


def differ(a: Tensor, b: Tensor, tolerance: float) -> bool:
    return not bool(((a - b).abs().max() <= tolerance * (1 + b.abs().max())).item())


def manifest(arrays: dict[str, Tensor], described: dict[str, Any]) -> bytes:
    tensors = {name: tensor.detach().cpu() for name, tensor in arrays.items()}
    return safetensors.dumps(tensors, {"crais": json.dumps(described)})
