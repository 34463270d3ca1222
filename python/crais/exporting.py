"""`crais.export`: a PyTorch model as one file of compiled functions, which `eval-loglik` runs.

The file is an AOTInductor package (.pt2): native code for one version of PyTorch and one kind of
machine. Beside the code it holds what crais must know (`extra/crais.safetensors`): shapes, the
likelihood's support, moments of the prior, and inputs with the values that eager PyTorch finds.
An MLP needs no code: its weights lie there too, and crais has its own evaluator for them.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
import platform
import shutil
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import Tensor

from crais import safetensors
from crais.likelihoods import Likelihood
from crais.mlp import MlpVae, recognise
from crais.priors import Hierarchical, Prior, StandardNormal

FORMAT_VERSION = 1
Function: TypeAlias = Callable[..., Any]

_EXTRA = "crais.safetensors"
_TRACE_ROWS = (3, 5)  # batch sizes whose graphs must be the same
_CHECK_ROWS = 4
_MAX_ROWS = 1 << 20
_VALUE_TOLERANCE = 1e-4  # relative, of compiled against eager values
_GRAD_TOLERANCE = 1e-3


class ExportError(ValueError):
    """The model cannot be exported as it is; the text says why, and what would be right."""


@dataclass
class ExportReport:
    """What `export` did."""

    path: str
    bytes: int
    seconds: float
    functions: list[str]
    kind: str  # of what was written: "compiled", "TorchScript", "weights"
    value_error: float  # the largest difference of log p(x, z), written against eager, nats
    grad_error: float
    batch: int  # rows of a call, where a row costs least
    microseconds: float  # of an evaluation (value and gradient) in Python, one thread
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"{self.path}: {self.kind}, {self.bytes / 1e6:.1f} MB in {self.seconds:.0f} s: "
            + ", ".join(self.functions),
            f"{self.kind} and eager differ by {self.value_error:.1e} nats in log p(x, z), by "
            f"{self.grad_error:.1e} in its gradient",
        ]
        if self.kind == "weights":
            lines.append("an MLP: crais computes it with its own evaluator")
        else:
            lines.append(
                f"an evaluation takes {self.microseconds:.0f} us on one thread, {self.batch} rows "
                "a call"
            )
        return "\n".join(lines + self.notes)


def export(
    path: str | os.PathLike[str],
    *,
    latent: int,
    image_shape: Sequence[int],
    decoder: Function | None = None,
    likelihood: Likelihood | None = None,
    prior: Prior | None = None,
    encoder: Function | None = None,
    log_joint: Function | None = None,
    log_prior: Function | None = None,
    labels: Tensor | None = None,
    binarisation: str | None = None,
    name: str | None = None,
    simulate: int = 1000,
    march: str | None = None,
    fused: bool = True,
    quiet: bool = False,
) -> ExportReport:
    """Compiles a model for `eval-loglik`, which estimates log p(x) of data under it.

    A path that ends in .pt gets TorchScript, which is slower, but runs under every LibTorch from
    1.13 on and needs no compiler. Any other gets native code for this PyTorch and this processor.

    Either a `decoder` with its `likelihood`, or any `log_joint`:

    decoder       z [B, latent] -> output, what the likelihood takes
    likelihood    p(x | output), one of `crais.likelihoods` or your own
    prior         p(z), one of `crais.priors`; a standard normal if it is left out
    log_prior     z -> log p(z) [B], for a prior that is only a function
    log_joint     (z [B, latent], x [B, *image_shape]) -> log p(x, z) [B], nats
    encoder       x [B, *image_shape] -> mean, log_var [B, latent] of q(z | x), or mean and
                  scale_tril [B, latent, latent]; annealing then starts there
    image_shape   of one datum, without the batch; any rank
    labels        of a conditional model p(x | y): examples of y [K, ...], float32 or int64, one of
                  which each simulated datum gets. Functions then take y after their other
                  arguments: decoder(z, y), encoder(x, y), log_joint(z, x, y)
    binarisation  how grey pixels become x: "dynamic", "static:SEED", "threshold:T" or "none".
                  Where a Bernoulli likelihood has none, eval-loglik takes static:0
    name          for people; the file's own if it is left out
    simulate      pairs (x, z) that are stored for certificates where the likelihood's draws are no
                  function of uniform numbers
    march         the processor to compile for, as "x86-64-v3"; this one if it is left out
    fused         keep only the weights of an MLP, which crais computes faster than compiled code;
                  False: compile it as any other model

    Modules must be in eval mode, and no row of a batch may depend on another. Raises ExportError.
    """
    started = time.monotonic()
    model = _Model(
        latent=latent,
        shape=tuple(int(n) for n in image_shape),
        decoder=decoder,
        likelihood=likelihood,
        prior=_prior_of(prior, log_prior),
        encoder=encoder,
        log_joint=log_joint,
        labels=labels,
    )
    functions = model.functions()
    with _in_eval_mode(model), torch.random.fork_rng():
        torch.manual_seed(0)
        arrays = model.checks()
        _check_rows(functions["joint"], _check_inputs(arrays))
        arrays |= model.prior_moments()
        if "simulate" not in functions:
            arrays |= model.pairs(simulate)
        name = name or os.path.splitext(os.path.basename(path))[0]
        described = model.describe(functions, name, binarisation, march)
        mlp = model.mlp() if fused else None
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "model")
            if mlp is not None:
                report = _write_weights(file, mlp, functions, arrays, described)
            elif os.fspath(path).endswith(".pt"):
                report = _write_script(file, model, functions, arrays, described)
            else:
                report = _write_package(file, model, functions, arrays, described, march)
            report.path, report.bytes = os.fspath(path), os.path.getsize(file)
            _move(file, os.fspath(path))
    report.functions = list(functions)
    report.seconds = time.monotonic() - started
    report.notes = model.notes
    if not quiet:
        print(report, file=sys.stderr)
    return report


@contextlib.contextmanager
def _in_eval_mode(model: _Model) -> Iterator[None]:
    """Priors and likelihoods are: users forget these, and modes change nothing but their speed."""
    ours = [part for part in (model.prior, model.likelihood) if part is not None and part.training]
    for part in ours:
        part.eval()
    try:
        yield
    finally:
        for part in ours:
            part.train()


class _Model:
    """The functions that are compiled, and what is known beside them."""

    def __init__(
        self,
        *,
        latent: int,
        shape: tuple[int, ...],
        decoder: Function | None,
        likelihood: Likelihood | None,
        prior: Prior,
        encoder: Function | None,
        log_joint: Function | None,
        labels: Tensor | None = None,
    ) -> None:
        if latent < 1 or not shape or min(shape) < 1:
            raise ExportError("latent and every entry of image_shape must be at least 1")
        if (decoder is None) != (likelihood is None) or (decoder is None) == (log_joint is None):
            raise ExportError("give a decoder with its likelihood, or a log_joint")
        self.latent, self.shape, self.prior = latent, shape, prior
        # None where they are not given: then no function asks for them.
        self.decoder: Any = decoder
        self.likelihood: Any = likelihood
        self.encoder: Any = encoder
        self._log_joint: Any = log_joint
        self.labels = _checked_labels(labels)
        self.notes: list[str] = []
        self.parts = [decoder, likelihood, prior, encoder, log_joint]
        self.device = _device_of(self.parts)
        _check_modes(self.parts)
        self._check_shapes()

    # y is the labels [B, ...] of a conditional model, and not there for others.

    def log_joint(self, z: Tensor, x: Tensor, *y: Tensor) -> Tensor:
        if self._log_joint is not None:
            return self._log_joint(z, x, *y)
        return self.prior.log_prob(z) + self.likelihood.log_prob(x, self.decoder(z, *y))

    def joint(self, z: Tensor, x: Tensor, *y: Tensor) -> tuple[Tensor, Tensor]:
        return _joint_of(self.log_joint)(z, x, *y)

    def prior_value(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return _with_gradient(self.prior.log_prob, z)

    def encode(self, x: Tensor, *y: Tensor) -> tuple[Tensor, Tensor]:
        loc, scale = self.encoder(x, *y)
        return loc, scale

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

    def functions(self) -> dict[str, Function]:
        found: dict[str, Function] = {"joint": self.joint}
        if self.encoder is not None:
            found["encode"] = self.encode
        if self.likelihood is None:
            return found
        found["output"] = self.output
        if not isinstance(self.prior, StandardNormal):
            found["prior"] = self.prior_value
        if self.likelihood.uniforms is not None and self._prior_draws():
            found["simulate"] = self.simulate
        return found

    def _prior_draws(self) -> bool:
        try:
            self.prior.sample(torch.zeros(1, self.latent), torch.zeros(1, self.prior.uniforms))
        except NotImplementedError:
            return False
        return True

    def mlp(self) -> MlpVae | None:
        """The model as weights, if it is made of MLPs."""
        if self.decoder is None or self.labels is not None:
            return None
        z, x = self._draw_z(2), self._plain_x(2)
        return recognise(self.decoder, self.likelihood, self.prior, self.encoder, z, x)

    def num_uniforms(self) -> int:
        return self.prior.uniforms + self.likelihood.uniforms * _product(self.shape)

    def examples(self, key: str) -> Callable[[int], tuple[Tensor, ...]]:
        """Inputs of the function called `key`, of so many rows."""
        z, x, y = self._draw_z, self._plain_x, self._draw_y
        return {
            "joint": lambda rows: (z(rows), x(rows), *y(rows)),
            "encode": lambda rows: (x(rows), *y(rows)),
            "output": lambda rows: (z(rows), *y(rows)),
            "prior": lambda rows: (z(rows),),
            "simulate": lambda rows: (
                torch.randn(rows, self.latent, device=self.device),
                torch.rand(rows, self.num_uniforms(), device=self.device),
                *y(rows),
            ),
        }[key]

    def _draw_z(self, rows: int) -> Tensor:
        return torch.randn(rows, self.latent, device=self.device)

    def _draw_y(self, rows: int) -> tuple[Tensor, ...]:
        """Labels, each one of the examples; nothing where the model has none."""
        if self.labels is None:
            return ()
        return (self.labels[torch.randint(len(self.labels), (rows,))].to(self.device),)

    def _plain_x(self, rows: int) -> Tensor:
        """Data in the support, of no distribution."""
        x = torch.rand(rows, *self.shape, device=self.device)
        if self.likelihood is None or self.likelihood.step is None:
            return x
        return torch.floor(x / self.likelihood.step) * self.likelihood.step

    def draw(self, rows: int) -> tuple[Tensor, ...] | None:
        """Latents, data that the model makes, and their labels; None if it has no way."""
        if self.likelihood is None or not self._prior_draws():
            return None
        if getattr(self.likelihood, "library", None) == "observed":
            return None  # a draw has another library size than the one that it was drawn with
        with torch.no_grad():
            u = torch.rand(rows, self.prior.uniforms, device=self.device)
            z, y = self.prior.sample(self._draw_z(rows), u), self._draw_y(rows)
            return z, self.likelihood.draw(self.decoder(z, *y), (rows, *self.shape)), *y

    def checks(self) -> dict[str, Tensor]:
        """Inputs with what eager PyTorch makes of them."""
        z, x, y = self._draw_z(_CHECK_ROWS), self._plain_x(_CHECK_ROWS), self._draw_y(_CHECK_ROWS)
        drawn = self.draw(_CHECK_ROWS)
        if drawn is not None:
            x, y = drawn[1].to(torch.float32), drawn[2:]
        value, grad = self.joint(z, x, *y)
        for what, numbers in (("log p(x, z)", value), ("its gradient", grad)):
            if not bool(torch.isfinite(numbers).all()):
                raise ExportError(f"{what} is not finite at z ~ N(0, I): {numbers.flatten()[:4]}")
        arrays = {"check.z": z, "check.x": x, "check.value": value, "check.grad": grad}
        return arrays | ({"check.y": y[0], "labels": self.labels} if self.labels is not None else {})

    def prior_moments(self) -> dict[str, Tensor]:
        if isinstance(self.prior, StandardNormal) or self.likelihood is None:
            return {}
        with torch.no_grad():
            loc, scale_tril = self.prior.moments(self.latent)
        return {"prior.loc": loc.float(), "prior.scale_tril": scale_tril.float()}

    def pairs(self, count: int) -> dict[str, Tensor]:
        """Exact draws (x, z), for certificates."""
        drawn = self.draw(count) if count > 0 else None
        if drawn is None:
            self.notes.append(
                "no certificate: there is no way to simulate from "
                + ("a log_joint" if self.likelihood is None else "this prior or likelihood")
            )
            return {}
        self.notes.append(f"{count} simulated pairs are stored for certificates")
        arrays = {"pairs.z": drawn[0].float(), "pairs.x": drawn[1].float()}
        return arrays | ({"pairs.y": drawn[2]} if self.labels is not None else {})

    def describe(
        self,
        functions: dict[str, Function],
        name: str,
        binarisation: str | None,
        march: str | None,
    ) -> dict[str, Any]:
        likelihood = self.likelihood
        return {
            "format": "crais-model",
            "version": FORMAT_VERSION,
            "name": name,
            "torch": torch.__version__.split("+")[0],
            "machine": platform.machine(),
            "cpu_flags": _cpu_flags(march),
            "device": "cpu",
            "dtype": "float32",
            "latent": self.latent,
            "data_shape": list(self.shape),
            "functions": list(functions),
            "uniforms": self.num_uniforms() if "simulate" in functions else 0,
            "likelihood": likelihood.spec() if likelihood is not None else {"name": "log_joint"},
            "prior": self.prior.spec() if likelihood is not None else {"name": "log_joint"},
            "low": _finite(likelihood.low if likelihood is not None else -float("inf")),
            "high": _finite(likelihood.high if likelihood is not None else float("inf")),
            "step": likelihood.step if likelihood is not None else None,
            "levels": likelihood.levels if likelihood is not None else None,
            "binarisation": binarisation,
            "device": self.device.type,
            "labels": self._describe_labels(),
        }

    def _describe_labels(self) -> dict[str, Any] | None:
        if self.labels is None:
            return None
        return {"shape": list(self.labels.shape[1:]), "dtype": str(self.labels.dtype)[6:]}

    def _check_shapes(self) -> None:
        rows = 2
        try:
            with torch.no_grad():
                value = self.log_joint(
                    self._draw_z(rows), self._plain_x(rows), *self._draw_y(rows)
                )
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            raise ExportError(
                f"log p(x, z) fails for z [{rows}, {self.latent}] and x "
                f"{[rows, *self.shape]}: {_first_line(error)}"
            ) from error
        if not isinstance(value, Tensor) or value.shape != (rows,):
            raise ExportError(
                f"log p(x, z) must have one entry a row, [{rows}]; it has {_shape_of(value)}"
            )
        if value.dtype != torch.float32:
            raise ExportError(f"log p(x, z) is {value.dtype}; export a float32 model")
        if self.encoder is None:
            return
        self._check_encoder(self._plain_x(rows), *self._draw_y(rows))

    def _check_encoder(self, x: Tensor, *y: Tensor) -> None:
        with torch.no_grad():
            code = self.encoder(x, *y)
        wanted = (x.shape[0], self.latent)
        if (
            not isinstance(code, (tuple, list))
            or len(code) != 2
            or code[0].shape != wanted
            or code[1].shape not in (wanted, (*wanted, self.latent))
        ):
            raise ExportError(
                f"the encoder must return mean and log_var {list(wanted)}, or mean and scale_tril "
                f"{[*wanted, self.latent]}"
            )


def _with_gradient(function: Function, z: Tensor) -> tuple[Tensor, Tensor]:
    """A function's values [B] at z [B, D], and their gradients [B, D]."""
    with torch.enable_grad():
        z = z.detach().requires_grad_(True)
        value = function(z)
        (grad,) = torch.autograd.grad(value.sum(), z)
    return value.detach(), grad


def _joint_of(log_joint: Function) -> Function:
    """(z, x, labels) -> log p(x, z) with its gradient with respect to z."""

    def joint(z: Tensor, x: Tensor, *y: Tensor) -> tuple[Tensor, Tensor]:
        return _with_gradient(lambda z: log_joint(z, x, *y), z)

    return joint


def _rows(output: Any) -> Tensor:
    """A tensor, or several, as [B, M]."""
    parts = output if isinstance(output, (tuple, list)) else (output,)
    return torch.cat([part.reshape(part.shape[0], -1) for part in parts], 1)


def _prior_of(prior: Prior | None, log_prior: Function | None) -> Prior:
    if prior is not None and log_prior is not None:
        raise ExportError("give prior or log_prior, not both")
    if log_prior is not None:
        return Hierarchical(log_prior)
    return prior if prior is not None else StandardNormal()


def _captured(parts: Iterable[Any]) -> list[Any]:
    """The modules and tensors that functions reach: their own, in closures, and global."""
    found: dict[int, Any] = {}
    waiting = list(parts)
    while waiting:
        part = waiting.pop()
        if id(part) in found or part is None:
            continue
        if isinstance(part, (torch.nn.Module, Tensor)):
            found[id(part)] = part
        elif isinstance(part, functools.partial):
            waiting += [part.func, *part.args, *part.keywords.values()]
        elif inspect.ismethod(part):
            found[id(part)] = part
            owner = part.__self__
            waiting += [owner] if isinstance(owner, torch.nn.Module) else getattr(owner, "__dict__", {}).values()
        elif inspect.isfunction(part):
            found[id(part)] = part
            reached = inspect.getclosurevars(part)
            waiting += [*reached.nonlocals.values(), *reached.globals.values()]
    return [part for part in found.values() if isinstance(part, (torch.nn.Module, Tensor))]


def _modules(parts: Iterable[Any]) -> list[torch.nn.Module]:
    return [part for part in _captured(parts) if isinstance(part, torch.nn.Module)]


def _device_of(parts: Iterable[Any]) -> torch.device:
    """Where the model is: its tensors are all on one device."""
    devices: set[torch.device] = set()
    for part in _captured(parts):
        tensors = (
            [*part.parameters(), *part.buffers()] if isinstance(part, torch.nn.Module) else [part]
        )
        devices |= {tensor.device for tensor in tensors}
    if len(devices) > 1:
        raise ExportError(f"the model is on several devices: {', '.join(map(str, devices))}")
    device = devices.pop() if devices else torch.device("cpu")
    if device.type not in ("cpu", "cuda"):
        raise ExportError(f"a model on {device} cannot be exported; move it to the CPU")
    return device


def _learning(parts: Iterable[Any]) -> list[Tensor]:
    """The leaves that require gradients."""
    tensors: list[Tensor] = []
    for part in _captured(parts):
        tensors += part.parameters() if isinstance(part, torch.nn.Module) else [part]
    return [tensor for tensor in tensors if tensor.requires_grad and tensor.is_leaf]


def _check_modes(parts: Iterable[Any]) -> None:
    """Modules that behave otherwise in training are named here; _check_rows finds the rest."""
    for owner in _modules(parts):
        for name, module in owner.named_modules():
            kind = type(module).__name__
            if module.training and ("BatchNorm" in kind or "Dropout" in kind):
                raise ExportError(f"{name or kind} ({kind}) is in training mode: call .eval()")


def _check_inputs(arrays: dict[str, Tensor]) -> list[Tensor]:
    """The stored inputs of `joint`."""
    return [arrays[key] for key in ("check.z", "check.x", "check.y") if key in arrays]


def _checked_labels(labels: Tensor | None) -> Tensor | None:
    if labels is None:
        return None
    if not isinstance(labels, Tensor) or labels.dim() < 1 or len(labels) < 1:
        raise ExportError("labels must be a tensor [K, ...] of examples of y")
    if labels.dtype not in (torch.float32, torch.int64):
        raise ExportError(f"labels must be float32 or int64; they are {labels.dtype}")
    return labels.detach().cpu()


def _check_rows(joint: Function, inputs: Sequence[Tensor]) -> None:
    """Every row is a function of its own inputs alone, and the same at every call."""
    value, grad = joint(*inputs)
    again = joint(*inputs)
    if not torch.equal(value, again[0]):
        raise ExportError(
            "log p(x, z) differs from call to call: is a dropout on, or a latent drawn inside?"
        )
    rows = inputs[0].shape[0]
    for i in range(rows):
        alone = joint(*(rows_of[i : i + 1] for rows_of in inputs))
        if _differ(value[i : i + 1], alone[0], _VALUE_TOLERANCE) or _differ(
            grad[i : i + 1], alone[1], _GRAD_TOLERANCE
        ):
            raise ExportError(
                f"a row's log p(x, z) depends on the other rows of its batch ({value[i]:.4f} among "
                f"{rows}, {alone[0][0]:.4f} alone): a BatchNorm in training mode does so"
            )


def _differ(a: Tensor, b: Tensor, tolerance: float) -> bool:
    return bool(((a - b).abs().max() > tolerance * (1 + b.abs().max())).item())


def _compile(
    key: str, function: Function, examples: Callable[[int], tuple[Tensor, ...]], march: str | None
) -> list[str]:
    """The files of a compiled function; its first dimension is free."""
    graph = _trace(key, function, examples)
    rows = torch.export.Dim("rows", min=1, max=_MAX_ROWS)
    inputs = examples(_TRACE_ROWS[0])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.export(
                graph, inputs, dynamic_shapes=tuple({0: rows} for _ in inputs), strict=False
            )
            options = {"aot_inductor.package": True, "cpp.threads": 1, "cpp.march": march}
            files: Any = torch._inductor.aot_compile(program.module(), inputs, options=options)
    except Exception as error:  # whatever the compiler raises
        raise ExportError(f"{key} cannot be compiled: {_first_line(error)}") from error
    return list(files)


def _trace(
    key: str, function: Function, examples: Callable[[int], tuple[Tensor, ...]]
) -> torch.fx.GraphModule:
    """The function as a graph of operations, the same whatever the batch."""
    from torch.fx.experimental import _config as shapes
    from torch.fx.experimental.proxy_tensor import make_fx

    def call(*inputs: Tensor) -> Any:  # make_fx takes a method's self for an argument
        return function(*inputs)

    graphs = []
    for rows in _TRACE_ROWS:
        try:
            with shapes.patch(use_duck_shape=False):  # type: ignore[attr-defined]
                tracer = make_fx(call, tracing_mode="symbolic", _allow_non_fake_inputs=True)
                graphs.append(tracer(*examples(rows)))
        except Exception as error:  # whatever the user's code raises under tracing
            raise ExportError(
                f"{key} cannot be traced: {_first_line(error)}. Control flow that depends on data, "
                ".item() and NumPy cannot be compiled"
            ) from error
    if graphs[0].code != graphs[1].code:
        raise ExportError(
            f"{key} does something else for another number of rows: write z.shape[0] where the "
            "batch size is meant"
        )
    return graphs[0]


def _write_package(
    file: str,
    model: _Model,
    functions: dict[str, Function],
    arrays: dict[str, Tensor],
    described: dict[str, Any],
    march: str | None,
) -> ExportReport:
    """Native code for each function, by AOTInductor."""
    _check_compiler()
    from torch._inductor.package import load_package, package_aoti

    compiled: dict[str, Any] = {
        key: _compile(key, function, model.examples(key), march)
        for key, function in functions.items()
    }
    package = file + ".pt2"  # the only name that the packager takes
    package_aoti(package, compiled)
    report = _measure("compiled", load_package(package, "joint"), arrays, described)
    with zipfile.ZipFile(package, "a") as archive:
        folder = archive.namelist()[0].split("/")[0]
        archive.writestr(f"{folder}/extra/{_EXTRA}", _manifest(arrays, described))
    os.rename(package, file)
    return report


def _write_script(
    file: str,
    model: _Model,
    functions: dict[str, Function],
    arrays: dict[str, Tensor],
    described: dict[str, Any],
) -> ExportReport:
    """TorchScript methods, whose gradients the reader takes."""
    module = _Scripted(model)
    examples = {
        module.methods[key]: model.examples(key)(_TRACE_ROWS[0]) for key in functions
    }
    frozen = _learning(model.parts)
    try:
        for parameter in frozen:
            parameter.requires_grad_(False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace_module(module, examples, check_trace=False)
    except Exception as error:  # whatever the user's code raises under tracing
        raise ExportError(f"cannot be traced: {_first_line(error)}") from error
    finally:
        for parameter in frozen:
            parameter.requires_grad_(True)
    report = _measure("TorchScript", _joint_of(traced.log_joint), arrays, described)
    torch.jit.save(traced, file, _extra_files={_EXTRA: _manifest(arrays, described)})
    return report


class _Scripted(torch.nn.Module):
    """The functions of a model as methods, its modules as children."""

    methods = {"joint": "log_joint", "prior": "log_prior"} | {
        key: key for key in ("encode", "output", "simulate")
    }

    def __init__(self, model: _Model) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList(_modules(model.parts))
        self._model = model

    def log_joint(self, z: Tensor, x: Tensor, *y: Tensor) -> Tensor:
        return self._model.log_joint(z, x, *y)

    def log_prior(self, z: Tensor) -> Tensor:
        return self._model.prior.log_prob(z)

    def encode(self, x: Tensor, *y: Tensor) -> tuple[Tensor, Tensor]:
        return self._model.encode(x, *y)

    def output(self, z: Tensor, *y: Tensor) -> tuple[Tensor, Tensor]:
        return self._model.output(z, *y)

    def simulate(self, e: Tensor, u: Tensor, *y: Tensor) -> tuple[Tensor, Tensor]:
        return self._model.simulate(e, u, *y)


def _write_weights(
    file: str,
    mlp: MlpVae,
    functions: dict[str, Function],
    arrays: dict[str, Tensor],
    described: dict[str, Any],
) -> ExportReport:
    """No code: the reader knows what an MLP computes."""
    report = _measure("weights", _joint_of(mlp.log_joint), arrays, described)
    described |= {"mlp": mlp.describe()}
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"model/extra/{_EXTRA}", _manifest(arrays | mlp.tensors(), described))
    return report


def _measure(
    kind: str, joint: Function, arrays: dict[str, Tensor], described: dict[str, Any]
) -> ExportReport:
    """How far what was written and eager differ, and what an evaluation costs."""
    value, grad = joint(*_check_inputs(arrays))
    if _differ(value, arrays["check.value"], _VALUE_TOLERANCE) or _differ(
        grad, arrays["check.grad"], _GRAD_TOLERANCE
    ):
        raise ExportError(
            f"{kind} and eager values differ: {value.tolist()} and "
            f"{arrays['check.value'].tolist()}"
        )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        costs = {rows: _seconds_a_row(joint, arrays, rows) for rows in (8, 16, 32, 64, 128, 256)}
    finally:
        torch.set_num_threads(threads)
    batch = min(rows for rows, cost in costs.items() if cost <= 1.05 * min(costs.values()))
    described["batch"] = batch
    return ExportReport(
        path="",
        bytes=0,
        seconds=0.0,
        functions=[],
        kind=kind,
        value_error=float((value - arrays["check.value"]).abs().max()),
        grad_error=float((grad - arrays["check.grad"]).abs().max()),
        batch=batch,
        microseconds=1e6 * costs[batch],
    )


def _seconds_a_row(joint: Function, arrays: dict[str, Tensor], rows: int) -> float:
    inputs = [_repeat(tensor, rows) for tensor in _check_inputs(arrays)]
    joint(*inputs)
    least = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        joint(*inputs)
        least = min(least, time.perf_counter() - started)
    return least / rows


def _repeat(rows: Tensor, count: int) -> Tensor:
    return rows.repeat(-(-count // rows.shape[0]), *[1] * (rows.dim() - 1))[:count].contiguous()


def _manifest(arrays: dict[str, Tensor], described: dict[str, Any]) -> bytes:
    tensors = {name: tensor.detach().cpu() for name, tensor in arrays.items()}
    return safetensors.dumps(tensors, {"crais": json.dumps(described)})


def _move(source: str, path: str) -> None:
    """In one step, so that no reader sees a part of the file."""
    folder = os.path.dirname(os.path.abspath(path))
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as beside:
        with open(source, "rb") as content:
            shutil.copyfileobj(content, beside)
    os.chmod(beside.name, 0o666 & ~_umask())
    os.replace(beside.name, path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


_LEVELS = {
    "x86-64": "",
    "x86-64-v2": "sse4_1 sse4_2 ssse3 popcnt",
    "x86-64-v3": "sse4_1 sse4_2 ssse3 popcnt avx avx2 bmi1 bmi2 f16c fma movbe",
    "x86-64-v4": "sse4_1 sse4_2 ssse3 popcnt avx avx2 bmi1 bmi2 f16c fma movbe "
    "avx512f avx512bw avx512cd avx512dq avx512vl",
}


def _cpu_flags(march: str | None) -> list[str]:
    """Instructions that the code may use, by their names in /proc/cpuinfo."""
    if march in _LEVELS:
        return _LEVELS[march].split()
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            lines = [line for line in file if line.startswith(("flags", "Features"))]
    except OSError:
        return []
    kinds = ("sse", "ssse", "avx", "fma", "f16c", "bmi", "amx", "popcnt", "movbe", "sve", "asimd")
    flags = lines[0].partition(":")[2].split() if lines else []
    return sorted(flag for flag in flags if flag.startswith(kinds))


def _check_compiler() -> None:
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        raise ExportError(
            f"there is no C++ compiler ('{compiler}'): install one, as apt install g++, or name it "
            "in CXX"
        )


def _finite(number: float) -> float | None:
    return number if abs(number) != float("inf") else None


def _product(numbers: Sequence[int]) -> int:
    product = 1
    for number in numbers:
        product *= number
    return product


def _shape_of(value: Any) -> str:
    return str(list(value.shape)) if isinstance(value, Tensor) else type(value).__name__


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
