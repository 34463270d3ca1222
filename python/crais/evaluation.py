"""`crais.evaluate`, `crais.certify` and `crais.log_normalizer`."""

from __future__ import annotations

import functools
import numbers
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from crais import native
from crais.captured import (
    Function,
    Latent,
    check_modes,
    device_of,
    digest_of,
    in_float32,
    other_dtype,
    required_arguments,
    sizes_of,
)
from crais.captured_model import check_bounded, check_density, check_rows, check_unchanged
from crais.densities import Density, density_of
from crais.draws import chains_of, doubts_of
from crais.errors import InternalError, Interrupted, RowShapeError, UsageError
from crais.gradients import with_gradient
from crais.images import as_batch, read, shapes_for, tensor_of
from crais.likelihoods import Likelihood
from crais.models import InMemory, in_memory, own_latent, parts_of, unwrapped
from crais.priors import Prior
from crais.random_state import OwnNumbers
from crais.reentry import keeps_state
from crais.results import Evidence, Result

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from crais._options import CertifyOptions, EvaluateOptions, LogNormalizerOptions

_SAID_OF_SLOW = (
    "a call of the density takes {:.1f} s, and a run 200 to 2,000: {:.0f} to {:.0f} minutes; chunk=10 shares "
    "calls among replicates, and base='laplace', witness='none', budget=500 takes some 300"
)
_SPELT = {"binarization": "binarisation", "dequantize": "dequantise"}
_OTHER_NAMES = {  # what others call our arguments
    "bounds": "support=[(low, high), ...]",
    "init": "starts=points [S, dim]",
    "log_prior": "prior=a distribution, or a target of both with support=...",
    "transform": "prior_transform=...",
}


@native.awaited()
def evaluate(
    model: Any = None,
    images: Any = None,
    *,
    likelihood: Likelihood | str | None = None,
    prior: Prior | torch.distributions.Distribution | torch.nn.Module | None = None,
    decoder: Function | None = None,
    encoder: Function | None = None,
    log_joint: Function | None = None,
    log_prior: Function | None = None,
    latent: Latent | None = None,
    image_shape: Sequence[int] | None = None,
    labels: Any = None,
    key: str | None = None,
    layout: str | None = None,
    missing: str | None = None,
    dtype: torch.dtype | str | None = None,
    rng: np.random.Generator | None = None,
    progress: bool = True,
    **flags: Unpack[EvaluateOptions],
) -> Result:
    """Estimates log p(x) of images under a model with latents, in nats, with error bars.

    The estimator is annealed importance sampling (Neal, 2001) with Hamiltonian Monte Carlo.

    >>> r = crais.evaluate(vae, images, likelihood=crais.Bernoulli())
    >>> r.mean, r.data_se, r.mc_se, r.bias

    model        a module with `decode` (or `decoder`), perhaps with `encode` (or `encoder`), `likelihood`, `prior`,
                 `latent`; or with `log_joint`; or a decoder, beside `latent`. Or the name of a file, such as
                 `crais.load` returns: a checkpoint of train-vae, a model of crais.export, a decoder in TorchScript
                 (with likelihood="bernoulli" or "gaussian:SD", and latent). The code of a .pt2 and of TorchScript
                 (.pt, .pth) runs: give only files that you trust
    images       [N, *shape]: a tensor, an array, a list of these, a Dataset or DataLoader whose
                 items are images, begin with one, or are dictionaries with one under `key`. Bytes
                 need scale=255, binarisation="static:0" or dequantise="uniform:0". Without
                 images, the options data, split, limit, indices and simulate choose them
    likelihood   p(x | output), such as crais.Bernoulli() for logits, or a name, as "gaussian:0.1"
    prior        p(z): a prior of crais, a distribution of PyTorch, a flow of zuko or normflows; by
                 default a standard normal. log_prior: z -> log p(z) [B], nats
    decoder      z [B, latent] -> output, if the model has no such method: a tensor, a mapping or
                 tuple with one, or a torch.distributions object (then without likelihood)
    encoder      x [B, *shape] -> mean and log_var [B, latent], or mean and scale_tril
    log_joint    (z [B, latent], x [B, *shape]) -> log p(x, z) [B], nats, instead of decoder and
                 likelihood; autograd gives its gradient
    latent       the number of latents, if there is no encoder; or the shape of z, such as
                 (4, 8, 8): the functions then take maps [B, 4, 8, 8]
    image_shape  the shape of one datum that the functions take, if the images have another
    labels       y [N, ...] of a conditional model p(x | y), whose functions take y last; by
                 default the labels beside the images in a Dataset or DataLoader
    layout       "NHWC" if the images have their channels last
    missing      "nan" if NaN marks numbers of an image that were not seen: log p(x) is then the
                 marginal of the others, for a likelihood of independent elements
    dtype        "float32": evaluate a copy of modules in float64, bfloat16 or half in float32
    rng          a NumPy Generator that draws the seed, in place of seed=
    progress     show a bar, if tqdm is installed

    Returns a `Result`. crais calls the functions with many rows at once, in float32, on the model's
    device, from several threads (threads=1: only from yours). Modules must be in eval mode, and a
    row's value must not depend on other rows. crais restores PyTorch's random state, threads and
    modes. Decoders of known layers run on crais's own evaluator (docs/models.md).

    Ctrl-C raises Interrupted, whose `result` has the finished images; with out="folder", another call with resume=True
    continues. Raises UsageError, PlanError, DataError, NoInputError, and whatever the model raises. Cost: 776
    evaluations of the decoder an image, before base and pilots, and more where the control asks for longer chains, at
    most `max_evals` (20,000); `budget` sets another number.

    Other options are the flags of eval-loglik:
    """
    options = native.seeded({_SPELT.get(name, name): value for name, value in flags.items()}, rng)
    native.check_names("eval-loglik", flags, evaluate)
    dtype = None if dtype is None else str(dtype).removeprefix("torch.")
    for name in ("data", "data_dir", "simulate", "split"):
        if images is not None and options.get(name) is not None:
            raise UsageError(f"give images or {name}, not both: each says what to evaluate")
    for name, way in {"key": key, "layout": layout}.items():
        if images is None and way is not None:
            raise UsageError(f"{name} needs images: give images, or leave {name} out")
    pixels, beside = (None, None) if images is None else read(images, key, layout)
    given = None if labels is None or isinstance(labels, str) else tensor_of(labels, "labels")
    if given is not None and given.dim() < 1:
        raise UsageError("labels is a single number: give [N, ...], one row for each image")
    if missing not in (None, "nan"):
        raise UsageError(f'missing is "nan", for numbers that were not seen, not {missing!r}')
    functions = {"decoder": decoder, "encoder": encoder, "prior": prior, "log_joint": log_joint, "log_prior": log_prior}
    if isinstance(model, (str, os.PathLike)):
        if (name := os.fspath(model)).startswith("hf://"):
            raise UsageError(f"{name} is on the Hub: give crais.load({name!r}) in its place")
        file = labels if isinstance(labels, str) else None
        chosen = {"likelihood": likelihood, "latent": latent, "dtype": dtype, "labels": file, **options}
        if likelihood is not None and not isinstance(likelihood, str):
            raise UsageError(f"likelihood of a file must be a name, not {type(likelihood).__name__}")
        for name, value in {**functions, "image_shape": image_shape, "missing": missing}.items():
            if value is not None:
                raise UsageError(f"{name} is for a model in memory, and {model} is a file")
        return _evaluated(os.fspath(model), chosen, pixels, given, progress)

    if isinstance(model, type):
        raise UsageError(f"the model is a class: give an instance, as {model.__name__}()")
    if isinstance(labels, str):
        raise UsageError("labels of a model in memory must be a tensor or an array, not a file's name")
    model = unwrapped(model)
    parts = parts_of(model, {**functions, "likelihood": likelihood}, latent)
    if dtype not in (None, "float32"):
        raise UsageError(f"dtype: models in memory are evaluated in float32, not {dtype}")
    if dtype is not None:
        memo: dict[int, Any] = {}
        parts = {name: in_float32(part, memo) for name, part in parts.items()}
    if labels is None and _is_conditional(parts):
        if beside is None:
            raise UsageError(
                "the model takes a label y as its last argument: give labels=..., or a Dataset or "
                "DataLoader that has them beside the images"
            )
        given = beside
    shape: Any = image_shape if image_shape is not None else getattr(model, "image_shape", None)
    if shape is not None:
        shape = sizes_of(shape, "image_shape")
        pixels = pixels if pixels is None else as_batch(pixels, shape)

    name, control = type(model).__name__ if model is not None else "model", options.get("control")
    try:
        captured = in_memory(
            **parts,
            force_dtype=str(options.get("force_dtype") or "auto"),
            latent=latent if latent is not None else own_latent(model, parts["encoder"]),
            shapes=[shape] if shape is not None else shapes_for(pixels),
            labels=given,
            simulate=max(_count(options.get("simulate")), 32 if control is None else _count(control)),
            data=_examples(pixels, options),
            missing=missing is not None,
            threads_apart=str(options.get("threads")) != "1",
            name=name,
        )
    except RowShapeError as error:
        own = () if pixels is None else pixels.shape[1:]
        if len(own) == 3 and own[2] in (2, 3, 4) and shape is None:
            raise UsageError(f'{error}; give layout="NHWC" if channels are last') from error
        raise
    pixels = pixels if pixels is None else as_batch(pixels, captured.shape)
    is_said = any(options.get(name) is not None for name in ("scale", "dequantise", "binarisation"))
    if captured.takes_reals and not is_said and pixels is not None and pixels.dtype == torch.uint8:
        raise UsageError("images are bytes: say scale=255 for a model of numbers in [0, 1], scale=1 for one of bytes")
    wanted_device, device = options.pop("device", None), captured.device
    if wanted_device is not None and str(wanted_device) not in (str(device), device.type, "auto"):
        raise UsageError(f"device: the model is on {device}, not {wanted_device}; move it with .to()")
    if captured.keeps_state:
        _call_alone(options)
    return _evaluated(name, {"device": str(device), **options}, pixels, given, progress, captured)


@native.awaited()
def certify(
    model: Any = None,
    images: Any = None,
    *,
    num_images: int | None = None,
    progress: bool = True,
    **options: Unpack[CertifyOptions],
) -> Result:
    """Encloses log p(x) of images between `lower` and `upper`, nats.

    >>> c = crais.certify(vae, images, likelihood=crais.Bernoulli())
    >>> c.lower, c.upper, c.gap, c.distance, c.met

    A reversed chain from an exact draw of the posterior gives an upper bound [Grosse, Ghahramani &
    Adams 2015]. Of your images coupled chains make draws, and when they meet bounds how far from
    exact these are: `distance` [Biswas, Jacob & Vanetti 2019]. Too late, or never: flag `apart`.

    model        as in `evaluate`; give `latent` and `image_shape` if it has no such attributes
    images       as in `evaluate`. Without images, the model draws `num_images` (1,000), with exact draws
    progress     show a bar, if tqdm is installed

    The truth lies between the bounds on average, so the gap certifies these settings: for your images as far as
    `distance` is small and chains have met every mode. The options are those of `evaluate`, and so are the exceptions.
    Returns a `Result`. Cost: twice the evaluations of `evaluate`, or some 3.5 times with images.
    """
    native.check_names("eval-loglik", options, certify, evaluate)
    options.setdefault("method", "bidirectional")
    if isinstance(images, numbers.Integral):  # a number was the second argument
        images, num_images = None, int(images)
    if images is not None and num_images is not None:
        raise UsageError("give images or num_images, not both: each says what to evaluate")
    simulate = 1000 if images is None and num_images is None else num_images
    return evaluate(model, images, simulate=simulate, progress=progress, **options)


@native.awaited()
def log_normalizer(
    target: Any = None,
    *,
    dim: int | None = None,
    prior: Any = None,
    prior_transform: Function | None = None,
    support: Any = None,
    value_and_grad: Function | None = None,
    base: Any = None,
    starts: Any = None,
    draws: Any = None,
    model_args: Sequence[Any] = (),
    model_kwargs: Mapping[str, Any] | None = None,
    rng: np.random.Generator | None = None,
    progress: bool = True,
    **flags: Unpack[LogNormalizerOptions],
) -> Evidence:
    """Estimates the log normaliser of an unnormalised density, in nats, or the evidence of a model.

    >>> z = crais.log_normalizer(log_density, dim=61)
    >>> z = crais.log_normalizer(log_likelihood, prior=torch.distributions.Normal(0, 1), dim=8)
    >>> z = crais.log_normalizer(model, model_kwargs={"y": y})   # of NumPyro, Pyro, PyMC, BridgeStan
    >>> z = crais.log_normalizer(log_density, dim=61, draws=draws)   # of chains that you have run
    >>> z.log_z, z.mc_se, z.flagged, z.reasons

    target       a function of PyTorch or JAX: z [B, dim] -> log density [B], nats, or for one row z [dim] -> a number.
                 PyTorch computes in float64 unless dtype="float32". Or a model, or the name of a target, such as "u11"
    dim          the dimension of z, for a function
    prior        the target is then a log likelihood, and log Z the evidence. A distribution of torch.distributions or
                 scipy.stats, a list of them, or a dict of them by name: the likelihood then takes a dict of [B, *shape]
    prior_transform  instead of a prior, a function of PyTorch: u [B, dim] in the unit cube ->
                 theta [B, dim]
    support      where the density is not zero: a constraint of torch.distributions.constraints or a pair (low, high)
                 for every coordinate, a list of them, or a dict of them by name. A value may be (constraint, shape)
    value_and_grad   instead of the target, a function of NumPy: z [B, dim] -> (values [B],
                 gradients [B, dim]), or z [dim] -> (a number, [dim])
    base         where z is: a torch distribution, (mean [dim], covariance [dim, dim]), or samples
                 [S, dim]; chains then move in whitened coordinates. Or a name, see below
    starts       [S, dim]: points near mass that you know of. The search for modes climbs from them
                 first, then from N(0, I) times 1, 3, 10 and 30. With a prior, a support or a model
                 they are points e, where theta = T(e) and e ~ N(0, I) is about the prior
    draws        of chains that you have run, in your coordinates: [chains, draws, dim], [draws, dim], a dict of
                 [chains, draws, *shape] by name, or ArviZ's InferenceData. The first half of each chain fits the base
                 (up to 128 dimensions), and anneals run back from draws of the second: see `Evidence.ratio`
    model_args, model_kwargs   data of a model of NumPyro or Pyro
    rng          a NumPy Generator that draws the seed, in place of seed=
    progress     show a bar, if tqdm is installed

    crais fits a base and draws from it. Draws whose weights have a light tail are the estimate. Otherwise crais
    anneals, in rounds of doubling length, until one shows which length brings the error (standard error and bias
    together) to `error` nats (0.1). The estimate is of fresh particles, flagged if `max_evals` evaluations a replicate
    (5e5) are too few. After Ctrl-C, the `result` of crais.Interrupted has the last rounds, flagged.

    The error bar comes from independent replicates (`problems`, 10). A density of -inf is zero. `notes` of the result
    say how crais used the function: differences of gradients, say, where autograd has no second derivatives. With a
    prior, crais evaluates 256 draws of it first. Raises what `evaluate` raises, and UsageError for discrete sites,
    improper priors and a model without its data.

    Other options are the flags of estimate-logz:
    """
    options = native.seeded(flags, rng)
    for name in options.keys() & _OTHER_NAMES.keys():
        raise UsageError(f"{name}: say {_OTHER_NAMES[name]}")
    native.check_names("estimate-logz", flags, log_normalizer)
    if len(model_args) or model_kwargs:
        target = functools.partial(target, *model_args, **(model_kwargs or {}))
    if base is None or isinstance(base, str):
        options, base = {"base": base, **options}, None
    spaces = {"prior": prior, "prior_transform": prior_transform, "support": support, "base": base}
    if isinstance(target, str):
        for name, value in {"dim": dim, "starts": starts, "draws": draws, **spaces}.items():
            if value is not None:
                raise UsageError(f"{name} is for a function; {target} has its own")
        named = (target, native.by_flag(options))
        return _estimated(
            lambda run: native.extension().log_normalizer(*named, None, None, 0, [], [], False, "", run=run), progress
        )
    if draws is not None:
        _set_for_draws(options, base)
    program, asked = "estimate-logz", native.by_flag(options)  # checked before the function is called
    checked = lambda run: native.extension().settings(program, asked)
    native.call(program, checked, progress=False, unit="replicates")
    device = device_of([target], [value_and_grad, prior_transform])
    check_still_eval = check_modes([target, prior_transform])
    with native.as_before(device), OwnNumbers():
        density = density_of(
            target, dim=dim, value_and_grad=value_and_grad, dtype=options.get("dtype"), device=device, **spaces
        )
    if density.dtype is not None:
        options["dtype"] = str(density.dtype).removeprefix("torch.")
    if options.get("device") in (None, "auto"):
        options["device"] = str(device)
    starts = None if starts is None else _starts_of(starts, density, options)
    function, chains = _density(density.log_density), None
    if draws is not None:
        with native.as_before(device), OwnNumbers():
            chains = chains_of(draws, density, int(options.get("problems") or 10))
            kind = torch.float32 if options.get("dtype") == "float32" else torch.float64
            density.doubts += doubts_of(chains, lambda e: function(e.to(device, kind)))
    is_alone, values, check_still_same = _examined(function, density, options)
    if is_alone:
        _call_alone(options)
    name = density.name if density.name.isidentifier() else "function"
    about = (density.dim, density.notes, density.doubts, density.is_single)
    identity = digest_of([target, prior_transform, value_and_grad], values if chains is None else [*values, chains])

    def check() -> None:
        check_still_eval()
        check_still_same()

    try:
        found = _estimated(
            lambda run: native.extension().log_normalizer(
                name, native.by_flag(options), starts, chains, *about, identity, density.has_prior, run=run
            ),
            progress,
            density,
            functions={"log_density": function},
            device=torch.device(options["device"]),
            check=check,
        )
    except InternalError as error:
        density.explain(error)
        raise
    if found is not None and found.flagged and not density.has_prior:
        with native.as_before(device), OwnNumbers():
            density.explain(None)
    return found if found is None or draws is None else found._with_ratio()


def _estimated(
    function: Callable[[native.Run], Any],
    progress: bool,
    density: Density | None = None,
    *,
    program: str = "estimate-logz",
    unit: str = "replicates",
    **about: Any,
) -> Any:
    """The result of a report; raises Interrupted where Ctrl-C came, or it is not whole."""
    report, run = native.call(program, function, progress=progress, unit=unit, **about)
    if report is None:
        return None  # a program has printed it
    result: Result | Evidence | None = None
    if report.done > 0:
        result = Result(report, run.images) if unit == "images" else Evidence(report, density)
    if result is not None and report.done == report.total and not run.stopped:
        return result
    error = Interrupted(f"interrupted; {report.done:,} of {report.total:,} {unit} are done")
    error.result = result
    raise error


def _call_alone(options: dict[str, Any]) -> None:
    options["threads"] = 1
    warnings.warn(
        "a function of the model keeps state during a call, so only one thread calls it (threads=1)", stacklevel=4
    )


def _examples(images: Tensor | None, options: dict[str, Any]) -> Tensor | None:
    """A few images in the range that the options bring them to."""
    if images is None:
        return None
    few = images[:16].float().nan_to_num(0, torch.inf, -torch.inf)  # what NaN means, the model says
    if str(options.get("binarisation") or "none") != "none":
        return (few > few.mean()).float()
    return few / (_count(options.get("scale")) or (256 if options.get("dequantise") else 1))


def _is_conditional(parts: dict[str, Any]) -> bool:
    """True if a label must be given beside z, or z and x."""
    name, own = ("decoder", 1) if parts["log_joint"] is None else ("log_joint", 2)
    return len(required_arguments(parts[name]) or []) > own


def _set_for_draws(options: dict[str, Any], base: Any) -> None:
    """The options of a run both ways, whose base is fitted to draws."""
    if base is not None or options.get("base") not in (None, "auto"):
        raise UsageError("give draws or base, not both: the base is fitted to draws")
    if options.setdefault("method", "bidirectional") != "bidirectional" or options.get("resume"):
        raise UsageError("draws start anneals that run back: the method is bidirectional, without resume")
    if not any(options.get(name) for name in ("error", "budget", "chains", "steps", "schedule", "path")):
        options["error"] = 0.1


def _starts_of(starts: Any, density: Density, options: dict[str, Any]) -> Tensor:
    """Points e [S, dim], for a base that searches for modes."""
    base = str(options.get("base") or "auto").split(":")[0]
    if base not in ("auto", "mixture", "modes"):
        raise UsageError(f"starts are for the bases auto, mixture and modes; {base} looks for no modes")
    dim, points = density.dim, tensor_of(starts, "starts").detach().cpu().double()
    if points.dim() != 2 or points.shape[1] != dim or not len(points):
        raise UsageError(f"starts are [S, {dim}]; these are {list(points.shape)}")
    if not points.isfinite().all():
        raise UsageError("starts has a number that is not finite")
    return torch.as_tensor(density.started(points))


def _evaluated(
    operand: str,
    options: dict[str, Any],
    images: Tensor | None,
    labels: Tensor | None,
    progress: bool,
    model: InMemory | None = None,
) -> Result:
    """The result for `model`, or without one for the file that the operand names."""
    manifest, about = None, dict[str, Any](device=torch.device("cpu"))
    if model is not None:
        manifest = torch.frombuffer(bytearray(model.manifest), dtype=torch.uint8)
        about |= {"device": model.device, "functions": model.functions, "check": model.check}
    given = (operand, native.by_flag(options), images, labels, manifest, str(about["device"]))
    estimate = lambda run: native.extension().evaluate(*given, run=run)
    return _estimated(estimate, progress, program="eval-loglik", unit="images", **about)


def _count(value: Any) -> int:
    """0 for what is no count: the program says so."""
    try:
        return max(0, int(value or 0))
    except (TypeError, ValueError):
        return 0


def _density(function: Function) -> Function:
    def log_density(z: Tensor) -> Tensor:
        try:
            value = function(z)
        except RuntimeError as error:
            if kind := other_dtype([function], z.dtype):
                fits = "dtype='float32'" if kind == "float32" else "module.float(), dtype='float32'"
                raise UsageError(
                    f"the module is {kind}, z is {str(z.dtype)[6:]}: {fits}, or module.double()"
                ) from error
            raise
        check_density(value, z, "the log density")
        return value

    return log_density


def _examined(
    function: Function, density: Density, options: dict[str, Any]
) -> tuple[bool, list[Tensor], Callable[[], None]]:
    """Looks at a density before the run, at points around 0.

    Returns whether one thread alone may call it, values that tell it from others, and a check for
    the end of the run that it is what it was. Raises UsageError where it grows without bound, or a
    row's value is not its own. Where it is not there at the points, the run will say why.
    """
    dtype = torch.float32 if str(options.get("dtype")) == "float32" else torch.float64
    device = torch.device(options["device"])
    values: list[Tensor] = []

    def points(rows: int) -> Tensor:
        return torch.randn(rows, density.dim, dtype=dtype).to(device)

    joint = functools.partial(with_gradient, function)

    def check() -> None:
        torch.set_num_threads(1)
        if len(z) > 0:
            check_unchanged(joint, [z], values[0], "log density")

    with native.as_before(device), OwnNumbers():
        torch.set_num_threads(1)
        if not density.has_prior:
            check_bounded(function, points(8), "the log density")
        is_alone = options.get("threads") not in (1, "1") and keeps_state(joint, lambda rows: (points(rows),))
        z = points(4)
        try:
            value, grad = joint(z)
            z = z[torch.isfinite(value) & torch.isfinite(grad).all(1)]
            began = time.monotonic()
            values.append(joint(z)[0] if len(z) > 0 else value)
            if (took := time.monotonic() - began) > 0.2:  # seconds
                warnings.warn(_SAID_OF_SLOW.format(took, 200 / 60 * took, 2000 / 60 * took), stacklevel=4)
            for scale in (1.0, 0.1, 10.0, 0.01) if len(z) < 4 else ():
                others = function(scale * points(64)).detach()
                values.append(others[torch.isfinite(others)])
        except Exception:
            z = z[:0]
        if len(z) > 0:
            check_rows(joint, [z], "log density")
    return is_alone, values, check


evaluate.__doc__ = (evaluate.__doc__ or "") + native.options("eval-loglik")
log_normalizer.__doc__ = (log_normalizer.__doc__ or "") + native.options("estimate-logz")
