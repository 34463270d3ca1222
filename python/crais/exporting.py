"""`crais.export`: a PyTorch model as one file of compiled functions, which `eval-loglik` runs.

The file is an AOTInductor package (.pt2): native code for one version of PyTorch and one kind of
machine. Beside the code it holds what crais must know (`extra/crais.safetensors`): shapes, the
likelihood's support, moments of the prior, and inputs with the values that eager PyTorch finds.
An MLP needs no code: its weights lie there too, and crais has its own evaluator for them. Of a
decoder with convolutions whose layers it knows, the weights lie beside the code.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from crais import random_state
from crais.captured import Function, leaves_of, modules_of
from crais.errors import UsageError, first_line
from crais.forces import processor_has_bfloat16
from crais.graphs import quickened
from crais.latent_model import (
    FORCE_TOLERANCE,
    GRAD_TOLERANCE,
    VALUE_TOLERANCE,
    LatentModel,
    check_inputs,
    computes,
    differ,
    joint_of,
    manifest,
)
from crais.latents import Latent
from crais.layers import MlpVae
from crais.likelihoods import Likelihood
from crais.outputs import unvalidated
from crais.priors import Prior

_EXTRA = "crais.safetensors"
_TRACE_ROWS = (3, 5)  # batch sizes whose graphs must be the same
_MAX_ROWS = 1 << 20
_PAYS = 0.95  # of the time with forces in float32: an entry that saves less is not worth its size


class ExportError(UsageError):
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
    force_microseconds: float | None = None  # the same with its gradient in bfloat16
    force_error: float | None = None  # of that gradient, of the gradient's own length
    decoder_is_fused: bool = False  # crais computes log p(x, z) from weights, on a CPU
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
            if self.decoder_is_fused:
                lines.append(
                    "on a CPU, crais computes log p(x, z) with its own evaluator: it knows the "
                    "decoder's layers"
                )
        if self.force_microseconds is not None:
            lines.append(
                f"with forces in bfloat16 {self.force_microseconds:.0f} us; these differ by "
                f"{self.force_error:.1e} of their length from float32's"
            )
        return "\n".join(lines + self.notes)


def export(
    path: str | os.PathLike[str],
    *,
    latent: Latent,
    image_shape: Sequence[int],
    decoder: Function | None = None,
    likelihood: Likelihood | None = None,
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
    force_dtype: str = "auto",
    quiet: bool = False,
) -> ExportReport:
    """Compiles a model for `eval-loglik`, which estimates log p(x) of data under it.

    A path that ends in .pt gets TorchScript, which is slower, but runs under every LibTorch and
    needs no compiler. Any other gets native code for this PyTorch and this processor.

    Either a `decoder` with its `likelihood`, or any `log_joint`:

    decoder       z [B, latent] -> output, what the likelihood takes
    likelihood    p(x | output), one of `crais.likelihoods` or your own
    prior         p(z): one of `crais.priors`, a distribution of PyTorch's, a flow of zuko's or
                  normflows'; a standard normal if it is left out
    log_prior     z -> log p(z) [B], for a prior that is only a function
    log_joint     (z [B, latent], x [B, *image_shape]) -> log p(x, z) [B], nats
    encoder       x [B, *image_shape] -> mean, log_var [B, latent] of q(z | x), or mean and
                  scale_tril [B, latent, latent]; annealing then starts there
    latent        D, or the shape of z, as (4, 8, 8): then decoder, log_joint and log_prior take
                  maps [B, 4, 8, 8], and the encoder returns them; priors of crais have rows [B, D]
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
    fused         keep the weights of an MLP, or of a decoder with convolutions, which crais
                  computes faster than compiled code; False: treat it as any other model
    force_dtype   "bfloat16": a second entry, with the same value and a gradient whose convolutions
                  and matrix products are in bfloat16, for `eval-loglik --force-dtype`. "auto": if
                  this processor has instructions for it and it is faster. "float32": none. It takes
                  half as long again to compile

    Modules must be in eval mode, and no row of a batch may depend on another. Raises ExportError.
    """
    started = time.monotonic()
    with _as_export_error():
        model = LatentModel(
            latent=latent,
            shape=image_shape,
            decoder=decoder,
            likelihood=likelihood,
            prior=prior,
            log_prior=log_prior,
            encoder=encoder,
            log_joint=log_joint,
            labels=labels,
        )
    if force_dtype not in ("auto", "bfloat16", "float32"):
        raise ExportError(f"force_dtype is auto, bfloat16 or float32, not {force_dtype}")
    if model.device.type not in ("cpu", "cuda"):
        raise ExportError(f"a model on {model.device} cannot be exported; move it to the CPU")
    notes: list[str] = []
    with model.in_eval_mode(), random_state.kept(model.device):
        random_state.begin(model.device)
        with _as_export_error():
            model.check_shapes()
            known = model.known_layers() if fused else None
            mlp = known if isinstance(known, MlpVae) else None
            compiled = mlp is None and not os.fspath(path).endswith(".pt")
            wanted = "float32" if known is not None and force_dtype == "auto" else force_dtype
            forces = compiled and _wants_forces(model, wanted)
            functions = model.functions(forces)
            arrays = model.checks(forces)
            if known is not None and mlp is None and not computes(known, arrays):
                known = None
        if "simulate" not in functions:
            arrays |= _pairs(model, simulate, notes)
        name = name or os.path.splitext(os.path.basename(path))[0]
        described = model.describe(functions, name, binarisation)
        described["device"] = model.device.type
        if known is not None and mlp is None:
            described["decoder"] = known.describe()
            arrays |= known.tensors()
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "model")
            if mlp is not None:
                report = _write_weights(file, mlp, arrays, described)
            elif os.fspath(path).endswith(".pt"):
                report = _write_script(file, model, functions, arrays, described)
            else:
                described["cpu_flags"] = _cpu_flags(march)
                report = _write_package(
                    file, model, functions, arrays, described, march, force_dtype == "auto"
                )
            report.path, report.bytes = os.fspath(path), os.path.getsize(file)
            _move(file, os.fspath(path))
    report.functions = described["functions"]
    report.seconds = time.monotonic() - started
    report.notes = notes
    report.decoder_is_fused = known is not None
    if not quiet:
        print(report, file=sys.stderr)
    return report


def _wants_forces(model: LatentModel, force_dtype: str) -> bool:
    """True if an entry with forces in bfloat16 is worth compiling, or asked for."""
    if force_dtype == "float32":
        return False
    if force_dtype == "auto" and not processor_has_bfloat16(model.device):
        return False
    if model.shorter_products().count > 0:
        return True
    if force_dtype == "bfloat16":
        raise UsageError(
            "the gradient has no convolution or matrix product that is large enough for bfloat16"
        )
    return False


@contextlib.contextmanager
def _as_export_error() -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        raise ExportError(str(error)) from error.__cause__


def _pairs(model: LatentModel, count: int, notes: list[str]) -> dict[str, Tensor]:
    """Exact draws (x, z), for certificates."""
    pairs = model.pairs(count)
    notes.append(
        f"{count} simulated pairs are stored for certificates"
        if pairs
        else "no certificate: there is no way to simulate from "
        + ("a log_joint" if model.likelihood is None else "this prior or likelihood")
    )
    return pairs


def _compile(
    key: str, function: Function, examples: Callable[[int], tuple[Tensor, ...]], march: str | None
) -> list[str]:
    """The files of a compiled function; its first dimension is free."""
    graph = quickened(_trace(key, function, examples))
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
        raise ExportError(f"{key} cannot be compiled: {first_line(error)}") from error
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
            with unvalidated(), shapes.patch(use_duck_shape=False):  # type: ignore[attr-defined]
                tracer = make_fx(call, tracing_mode="symbolic", _allow_non_fake_inputs=True)
                graphs.append(tracer(*examples(rows)))
        except Exception as error:  # whatever the user's code raises under tracing
            raise ExportError(
                f"{key} cannot be traced: {first_line(error)}. Control flow that depends on data, "
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
    model: LatentModel,
    functions: dict[str, Function],
    arrays: dict[str, Tensor],
    described: dict[str, Any],
    march: str | None,
    only_if_faster: bool,
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
    if described["forces"]:
        _measure_forces(load_package(package, "joint_bfloat16"), arrays, described, report)
        if only_if_faster and not described["forces"]["pays"]:
            package = _without_forces(package, compiled, arrays, described, report)
    with zipfile.ZipFile(package, "a") as archive:
        folder = archive.namelist()[0].split("/")[0]
        archive.writestr(f"{folder}/extra/{_EXTRA}", manifest(arrays, described))
    os.rename(package, file)
    return report


def _write_script(
    file: str,
    model: LatentModel,
    functions: dict[str, Function],
    arrays: dict[str, Tensor],
    described: dict[str, Any],
) -> ExportReport:
    """TorchScript methods, whose gradients the reader takes."""
    module = _Scripted(model)
    examples = {
        module.methods[key]: model.examples(key)(_TRACE_ROWS[0]) for key in functions
    }
    frozen = leaves_of(model.parts)
    try:
        for parameter in frozen:
            parameter.requires_grad_(False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace_module(module, examples, check_trace=False)
    except Exception as error:  # whatever the user's code raises under tracing
        raise ExportError(f"cannot be traced: {first_line(error)}") from error
    finally:
        for parameter in frozen:
            parameter.requires_grad_(True)
    report = _measure("TorchScript", joint_of(traced.log_joint), arrays, described)
    torch.jit.save(traced, file, _extra_files={_EXTRA: manifest(arrays, described)})
    return report


class _Scripted(torch.nn.Module):
    """The functions of a model as methods, its modules as children."""

    methods = {"joint": "log_joint", "prior": "log_prior"} | {
        key: key for key in ("encode", "output", "simulate")
    }

    def __init__(self, model: LatentModel) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList(modules_of(model.parts))
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
    file: str, mlp: MlpVae, arrays: dict[str, Tensor], described: dict[str, Any]
) -> ExportReport:
    """No code: the reader knows what an MLP computes."""
    report = _measure("weights", joint_of(mlp.log_joint), arrays, described)
    described |= {"mlp": mlp.describe()}
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"model/extra/{_EXTRA}", manifest(arrays | mlp.tensors(), described))
    return report


def _measure(
    kind: str, joint: Function, arrays: dict[str, Tensor], described: dict[str, Any]
) -> ExportReport:
    """How far what was written and eager differ, and what an evaluation costs."""
    value, grad = joint(*check_inputs(arrays))
    if differ(value, arrays["check.value"], VALUE_TOLERANCE) or differ(
        grad, arrays["check.grad"], GRAD_TOLERANCE
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


def _measure_forces(
    joint: Function, arrays: dict[str, Tensor], described: dict[str, Any], report: ExportReport
) -> None:
    """The same of the entry whose gradient is in bfloat16."""
    value, grad = joint(*check_inputs(arrays))
    if differ(value, arrays["check.value"], VALUE_TOLERANCE) or differ(
        grad, arrays["check.grad_bfloat16"], FORCE_TOLERANCE
    ):
        raise ExportError("compiled and eager values with forces in bfloat16 differ")
    length = arrays["check.grad"].norm(dim=1)
    report.force_error = float(((grad - arrays["check.grad"]).norm(dim=1) / length).max())
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        report.force_microseconds = 1e6 * _seconds_a_row(joint, arrays, report.batch)
    finally:
        torch.set_num_threads(threads)
    described["forces"]["pays"] = report.force_microseconds < _PAYS * report.microseconds


def _without_forces(
    package: str,
    compiled: dict[str, Any],
    arrays: dict[str, Tensor],
    described: dict[str, Any],
    report: ExportReport,
) -> str:
    """The package without the entry whose gradient is in bfloat16, for that is no faster."""
    from torch._inductor.package import package_aoti

    del compiled["joint_bfloat16"], arrays["check.grad_bfloat16"]
    described["functions"] = [key for key in described["functions"] if key != "joint_bfloat16"]
    described["forces"] = None
    report.force_microseconds = report.force_error = None
    smaller = package.replace(".pt2", "_float32.pt2")
    package_aoti(smaller, compiled)
    return smaller


def _seconds_a_row(joint: Function, arrays: dict[str, Tensor], rows: int) -> float:
    inputs = [_repeat(tensor, rows) for tensor in check_inputs(arrays)]
    joint(*inputs)
    least = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        joint(*inputs)
        least = min(least, time.perf_counter() - started)
    return least / rows


def _repeat(rows: Tensor, count: int) -> Tensor:
    return rows.repeat(-(-count // rows.shape[0]), *[1] * (rows.dim() - 1))[:count].contiguous()


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
