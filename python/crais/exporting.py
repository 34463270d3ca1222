"""`crais.export`: a PyTorch model as one file of compiled functions, which `eval-loglik` runs.

The file is an AOTInductor package (.pt2): native code for one version of PyTorch and one kind of machine. Beside the
code it holds what crais must know (`extra/crais.safetensors`): shapes, the likelihood's support, moments of the prior,
and inputs with the values that eager PyTorch finds. An MLP needs no code: its weights lie there too, and crais has its
own evaluator for them. Of a decoder with convolutions whose layers it knows, the weights lie beside the code.
"""

from __future__ import annotations

import inspect
import os
import shutil
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from crais.captured import Function, Latent, modules_of, sizes_of, tensors_of
from crais.captured_model import (
    GRAD_TOLERANCE,
    VALUE_TOLERANCE,
    Captured,
    CapturedModel,
    check_inputs,
    differ,
    joint_of,
    manifest,
)
from crais.errors import UsageError, did_you_mean, first_line
from crais.forces import processor_flags
from crais.likelihoods import Likelihood
from crais.models import captured_model, own_latent, parts_of, unwrapped
from crais.outputs import unvalidated
from crais.priors import Prior
from crais.random_state import OwnNumbers

_EXTRA = "crais.safetensors"
_TRACE_ROWS = (3, 5)  # batch sizes whose graphs must be the same
_MAX_ROWS = 1 << 20
_BATCH = 16  # rows of a reader's call, whose activations stay in the processor's cache


@dataclass(repr=False)
class ExportReport:
    """What `export` wrote, and how it compares with eager PyTorch.

    path, bytes       the file and its size
    seconds           how long the export took
    functions         names of the functions in the file
    kind              "compiled", "TorchScript" or "weights"
    value_error       the largest difference of log p(x, z) from eager PyTorch, nats
    grad_error        the largest difference of its gradient
    decoder_is_fused  True if crais computes log p(x, z) from the weights, on a CPU
    notes             remarks, such as why the model has no certificate
    """

    path: str
    bytes: int
    seconds: float
    functions: list[str]
    kind: str
    value_error: float
    grad_error: float
    decoder_is_fused: bool
    notes: list[str]

    def __repr__(self) -> str:
        lines = [
            f"{self.path}: {self.kind}, {self.bytes / 1e6:.1f} MB in {self.seconds:.0f} s: "
            + ", ".join(self.functions),
            f"{self.kind} and eager differ by {self.value_error:.1e} nats in log p(x, z), by "
            f"{self.grad_error:.1e} in its gradient",
        ]
        if self.decoder_is_fused:
            where = "" if self.kind == "weights" else "on a CPU, "
            lines.append(f"{where}crais's own evaluator computes log p(x, z) from the weights")
        return "\n".join(lines + self.notes)


def export(
    model: Any = None,
    path: str | os.PathLike[str] | None = None,
    *,
    latent: Latent | None = None,
    image_shape: Sequence[int] | None = None,
    decoder: Function | None = None,
    likelihood: Likelihood | str | None = None,
    prior: Prior | torch.distributions.Distribution | torch.nn.Module | None = None,
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
    **others: Any,
) -> ExportReport:
    """Compiles a model into a file, which `eval-loglik` and `crais.evaluate` take.

    >>> crais.export(vae, "vae.pt2", likelihood=crais.Bernoulli(), image_shape=(1, 28, 28))
    >>> crais.export("vae.pt2", decoder=vae.decode, likelihood=crais.Bernoulli(), latent=32,
    ...              image_shape=(1, 28, 28))

    The model and the path may come in either order.

    A path that ends in .pt gets TorchScript, which is slower, but runs under every LibTorch and
    needs no compiler. Any other path gets native code for this PyTorch and this processor.

    Without a model, give a `decoder` with its `likelihood`, or a `log_joint`:

    model, decoder, likelihood, prior, log_prior, log_joint, encoder, latent, image_shape
                  as in `crais.evaluate`; annealing starts at the encoder's q(z | x)
    labels        of a conditional model p(x | y): examples of y [K, ...], float32 or int64, one of
                  which each simulated datum gets. Functions then take y after their other
                  arguments: decoder(z, y), encoder(x, y), log_joint(z, x, y)
    binarisation  how grey pixels become x: "dynamic", "static:SEED", "threshold:T" or "none".
                  Where a Bernoulli likelihood has none, eval-loglik takes static:0
    name          for people; the file's own if it is left out
    simulate      pairs (x, z) that are stored for certificates where the likelihood's draws are no
                  function of uniform numbers
    march         the processor to compile for, as "x86-64-v3"; this one if it is left out
    fused         keep the weights of an MLP, or of a decoder of known layers, for crais's own
                  evaluator, which is faster than compiled code; False: compile it

    Modules must be in eval mode, and no row of a batch may depend on another. Returns an
    `ExportReport`. Raises UsageError. Cost: 30 seconds to two minutes, mostly of the C++ compiler.
    """
    started = time.monotonic()
    binarisation = others.pop("binarization", binarisation)
    for other in others:
        raise UsageError(f"no option {other}" + did_you_mean(other, inspect.signature(export).parameters))
    if isinstance(model, (str, os.PathLike)):
        model, path = path, model
    if path is None:
        raise UsageError('give the file to write, as "model.pt2"')
    own = unwrapped(model)
    functions = {"decoder": decoder, "encoder": encoder, "log_joint": log_joint, "log_prior": log_prior}
    parts = parts_of(own, {**functions, "likelihood": likelihood, "prior": prior})
    shape = getattr(own, "image_shape", None) if image_shape is None else image_shape
    with OwnNumbers():
        model = captured_model(
            latent=own_latent(own, parts["encoder"]) if latent is None else latent,
            shapes=[] if shape is None else [sizes_of(shape, "image_shape")],
            labels=labels,
            **parts,
        )
    if model.device.type not in ("cpu", "cuda"):
        raise UsageError(f"a model on {model.device} cannot be exported; move it to the CPU")
    notes: list[str] = []
    with model.in_eval_mode():
        with OwnNumbers():
            found = model.captured(
                name or os.path.splitext(os.path.basename(path))[0], simulate, fused=fused, binarisation=binarisation
            )
        if "pairs.z" in found.arrays:
            notes.append(f"{simulate} simulated pairs are stored for certificates")
        elif "simulate" not in found.functions:
            what = "a log_joint" if model.likelihood is None else "this prior or likelihood"
            notes.append(f"no certificate: there is no way to simulate from {what}")
        arrays, described, known = found.arrays, found.described, found.known
        described |= {"device": model.device.type, "batch": _BATCH}
        beside = os.path.dirname(os.path.abspath(path))  # so that no reader sees half a file
        with tempfile.TemporaryDirectory(dir=beside) as folder:
            file = os.path.join(folder, "model")
            if known is not None and known.is_mlp:  # no code: the reader knows what it computes
                kind, joint = "weights", joint_of(known.log_joint)
                with zipfile.ZipFile(file, "w") as archive:
                    archive.writestr(f"model/extra/{_EXTRA}", manifest(arrays, described))
            elif os.fspath(path).endswith(".pt"):
                kind, joint = "TorchScript", _write_script(file, model, found)
            else:
                described["cpu_flags"] = _cpu_flags(march)
                if not quiet:
                    print(f"{path}: compiling, for up to two minutes", file=sys.stderr, flush=True)
                kind, joint = "compiled", _write_package(file, model, found, march)
            (value, grad), wanted = joint(*check_inputs(arrays)), arrays["check.value"]
            if differ(value, wanted, VALUE_TOLERANCE) or differ(grad, arrays["check.grad"], GRAD_TOLERANCE):
                raise UsageError(f"{kind} and eager values differ: {value.tolist()} and {wanted.tolist()}")
            size = os.path.getsize(file)
            os.replace(file, path)
    return ExportReport(
        path=os.fspath(path),
        bytes=size,
        seconds=time.monotonic() - started,
        functions=described["functions"],
        kind=kind,
        value_error=float((value - wanted).abs().max()),
        grad_error=float((grad - arrays["check.grad"]).abs().max()),
        decoder_is_fused=known is not None,
        notes=notes,
    )


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
            program = torch.export.export(graph, inputs, dynamic_shapes=tuple({0: rows} for _ in inputs), strict=False)
            options = {"aot_inductor.package": True, "cpp.threads": 1, "cpp.march": march}
            files: Any = torch._inductor.aot_compile(program.module(), inputs, options=options)
    except Exception as error:  # whatever the compiler raises
        raise UsageError(f"{key} cannot be compiled: {first_line(error)}") from error
    return list(files)


def _trace(key: str, function: Function, examples: Callable[[int], tuple[Tensor, ...]]) -> torch.fx.GraphModule:
    """The function as a graph of operations, the same whatever the batch."""
    from torch.fx.experimental import _config as shapes
    from torch.fx.experimental.proxy_tensor import make_fx

    def call(*inputs: Tensor) -> Any:  # make_fx takes a method's self for an argument
        return function(*inputs)

    graphs = []
    for rows in _TRACE_ROWS:
        try:
            with unvalidated(), shapes.patch(use_duck_shape=False):  # type: ignore[attr-defined]
                tracer = make_fx(call, tracing_mode="symbolic", _allow_non_fake_inputs=True)
                graphs.append(tracer(*examples(rows)))
        except Exception as error:  # whatever the user's code raises under tracing
            raise UsageError(
                f"{key} cannot be traced: {first_line(error)}. Control flow that depends on data, "
                ".item() and NumPy cannot be compiled"
            ) from error
    if graphs[0].code != graphs[1].code:
        raise UsageError(f"{key} differs for another number of rows: write z.shape[0] where the batch size is meant")
    return graphs[0]


def _write_package(file: str, model: CapturedModel, found: Captured, march: str | None) -> Function:
    """Native code for each function, by AOTInductor. Returns `joint`."""
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        raise UsageError(f"there is no C++ compiler ('{compiler}'): install one, as apt install g++, or name it in CXX")
    from torch._inductor.package import load_package, package_aoti

    compiled: dict[str, Any] = {
        key: _compile(key, function, model.examples(key), march) for key, function in found.functions.items()
    }
    package = file + ".pt2"  # the only name that the packager takes
    package_aoti(package, compiled)
    joint: Function = load_package(package, "joint")
    with zipfile.ZipFile(package, "a") as archive:
        folder = archive.namelist()[0].split("/")[0]
        archive.writestr(f"{folder}/extra/{_EXTRA}", manifest(found.arrays, found.described))
    os.rename(package, file)
    return joint


def _write_script(file: str, model: CapturedModel, found: Captured) -> Function:
    """TorchScript methods, whose gradients the reader takes. Returns `joint`."""
    module: Any = torch.nn.Module()
    module.parts = torch.nn.ModuleList(modules_of(model.parts))
    plain = {"joint": ("log_joint", model.log_joint), "prior": ("log_prior", model.prior.log_prob)}
    examples = {}
    for key, function in found.functions.items():
        method, function = plain.get(key, (key, function))
        setattr(module, method, function)
        examples[method] = model.examples(key)(_TRACE_ROWS[0])
    frozen = [one for one in tensors_of(model.parts) if one.requires_grad and one.is_leaf]
    try:
        for parameter in frozen:
            parameter.requires_grad_(False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace_module(module, examples, check_trace=False)
    except Exception as error:  # whatever the user's code raises under tracing
        raise UsageError(f"cannot be traced: {first_line(error)}") from error
    finally:
        for parameter in frozen:
            parameter.requires_grad_(True)
    torch.jit.save(traced, file, _extra_files={_EXTRA: manifest(found.arrays, found.described)})
    return joint_of(traced.log_joint)


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
    kinds = ("sse", "ssse", "avx", "fma", "f16c", "bmi", "amx", "popcnt", "movbe", "sve", "asimd")
    return sorted(flag for flag in processor_flags() if flag.startswith(kinds))
