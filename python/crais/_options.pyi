"""The programs' flags, as keyword arguments. python/tests/test_options.py writes this file."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal

import numpy as np
import torch
from typing_extensions import TypedDict

from crais.captured import Function, Latent
from crais.likelihoods import Likelihood
from crais.priors import Prior

_Options = TypedDict("_Options", {
    "preset": Literal["recommended", "paper"] | None, "method": str | Sequence[str] | None, "chains": int | None,
    "budget": float | None, "max_evals": float | None, "repeats": int | None, "seed": int | None,
    "schedule": str | None, "steps": int | None, "path": str | None, "kernel": str | None, "leapfrog": int | None,
    "step_size": float | Literal["adapt"] | None, "resample": str | None, "target_acceptance": float | None,
    "force_dtype": Literal["auto", "float32", "bfloat16"] | None, "pilot_chains": int | None, "min_step": float | None,
    "max_step": float | None, "max_steps": int | None, "tolerance": float | None, "weighted": bool | None,
    "weighted_ratio": bool | None, "interpolate": int | None, "data_dir": str | PathLike[str] | None,
    "device": str | torch.device | None, "threads": int | None, "chunk": int | None, "error": float | None,
    "out": str | PathLike[str] | None, "resume": bool | None, "overwrite": bool | None,
    "accept_other_version": bool | None,
}, total=False)

_OfImages = TypedDict("_OfImages", {
    "base": str | None, "per_image": bool | None, "pilot_images": int | None, "data": str | PathLike[str] | None,
    "split": Literal["train", "validation", "test"] | None, "binarisation": str | None, "scale": float | None,
    "dequantise": str | None, "limit": int | None, "indices": str | None, "control": int | None, "shard": str | None,
    "accept_prior": bool | None,
}, total=False)

_OfModels = TypedDict("_OfModels", {
    "likelihood": Likelihood | str | None, "prior": Prior | torch.distributions.Distribution | torch.nn.Module | None,
    "decoder": Function | None, "encoder": Function | None, "log_joint": Function | None, "log_prior": Function | None,
    "latent": Latent | None, "image_shape": Sequence[int] | None, "labels": Any, "key": str | None,
    "layout": str | None, "missing": str | None, "dtype": torch.dtype | str | None, "rng": np.random.Generator | None,
}, total=False)

_OfDensities = TypedDict("_OfDensities", {
    "per_problem": bool | None, "pilot_problems": int | None, "problems": int | None,
    "witness": Literal["auto", "none"] | None, "expect": str | Sequence[str] | None,
    "save_particles": str | PathLike[str] | None, "dtype": Literal["float32", "float64"] | None,
}, total=False)

TrainOptions = TypedDict("TrainOptions", {
    "data_dir": str | PathLike[str] | None, "data": str | None, "binarisation": str | None, "latent": int | None,
    "hidden": int | Sequence[int] | None, "act": str | None, "likelihood": str | None, "objective": str | None,
    "epochs": int | None, "batch": int | None, "lr": float | None, "betas": float | Sequence[float] | None,
    "decay": str | None, "kl_warmup": int | None, "patience": int | None, "seed": int | None,
    "out": str | PathLike[str] | None, "checkpoint_every": int | None, "resume": bool | None, "overwrite": bool | None,
    "device": str | torch.device | None, "threads": int | None,
}, total=False)

class EvaluateOptions(_Options, _OfImages, total=False):
    simulate: int | None

class CertifyOptions(_Options, _OfImages, _OfModels): ...
class LogNormalizerOptions(_Options, _OfDensities): ...
