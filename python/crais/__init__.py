"""crais: the log-likelihood of generative models, in nats, with error bars.

>>> import crais
>>> r = crais.evaluate(vae, images, likelihood=crais.Bernoulli())
>>> r.mean, r.mc_se
>>> crais.export("vae.pt2", decoder=vae.decode, likelihood=crais.Bernoulli(), encoder=vae.encode,
...              latent=32, image_shape=(1, 28, 28))

`evaluate`, `certify`, `log_normalizer` and `train_vae` are compiled (pip install); the rest needs
torch alone. A name is loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crais.errors import (
        DataError,
        DeviceError,
        InternalError,
        Interrupted,
        NoInputError,
        OutputError,
        PlanError,
        UsageError,
    )
    from crais.evaluation import Target, certify, evaluate, log_normalizer
    from crais.exporting import ExportError, ExportReport, export
    from crais.likelihoods import (
        Bernoulli,
        Categorical,
        ContinuousBernoulli,
        DiscretizedGaussian,
        DiscretizedLogistic,
        DiscretizedLogisticMixture,
        Gaussian,
        GaussianWithScale,
        Laplace,
        Likelihood,
        NegativeBinomial,
        Poisson,
        SquaredError,
        StudentT,
        ZeroInflatedNegativeBinomial,
    )
    from crais.priors import Flow, Hierarchical, Mixture, Prior, StandardNormal, VampPrior
    from crais.priors import Gaussian as GaussianPrior
    from crais.results import BayesFactor, Comparison, Result, bayes_factor, compare
    from crais.training import train_vae

# The module of each name, and what it is called there.
_PLACES = {
    "crais.errors": (
        "DataError DeviceError InternalError Interrupted NoInputError OutputError PlanError "
        "UsageError"
    ),
    "crais.evaluation": "Target certify evaluate log_normalizer",
    "crais.exporting": "ExportError ExportReport export",
    "crais.likelihoods": (
        "Bernoulli Categorical ContinuousBernoulli DiscretizedGaussian DiscretizedLogistic "
        "DiscretizedLogisticMixture Gaussian GaussianWithScale Laplace Likelihood "
        "NegativeBinomial Poisson SquaredError StudentT ZeroInflatedNegativeBinomial"
    ),
    "crais.priors": (
        "Flow GaussianPrior=Gaussian Hierarchical Mixture Prior StandardNormal VampPrior"
    ),
    "crais.results": "BayesFactor Comparison Result bayes_factor compare",
    "crais.training": "train_vae",
}
_NAMES = {
    name.partition("=")[0]: (module, name.rpartition("=")[2])
    for module, names in _PLACES.items()
    for name in names.split()
}

__all__ = [
    "BayesFactor",
    "Bernoulli",
    "Categorical",
    "Comparison",
    "ContinuousBernoulli",
    "DataError",
    "DeviceError",
    "DiscretizedGaussian",
    "DiscretizedLogistic",
    "DiscretizedLogisticMixture",
    "ExportError",
    "ExportReport",
    "Flow",
    "Gaussian",
    "GaussianPrior",
    "GaussianWithScale",
    "Hierarchical",
    "InternalError",
    "Interrupted",
    "Laplace",
    "Likelihood",
    "Mixture",
    "NegativeBinomial",
    "NoInputError",
    "OutputError",
    "PlanError",
    "Poisson",
    "Prior",
    "Result",
    "SquaredError",
    "StandardNormal",
    "StudentT",
    "Target",
    "UsageError",
    "VampPrior",
    "ZeroInflatedNegativeBinomial",
    "bayes_factor",
    "certify",
    "compare",
    "evaluate",
    "export",
    "log_normalizer",
    "train_vae",
]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'crais' has no attribute '{name}'")
    module, own = _NAMES[name]
    value = getattr(importlib.import_module(module), own)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
