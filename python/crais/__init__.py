"""crais: the log-likelihood of generative models, in nats, with error bars.

>>> import crais
>>> crais.export("vae.pt2", decoder=vae.decode, likelihood=crais.Bernoulli(), encoder=vae.encode,
...              latent=32, image_shape=(1, 28, 28))

`eval-loglik vae.pt2` then estimates log p(x).
"""

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
    StudentT,
)
from crais.priors import Flow, Hierarchical, Mixture, Prior, StandardNormal, VampPrior
from crais.priors import Gaussian as GaussianPrior

__all__ = [
    "Bernoulli",
    "Categorical",
    "ContinuousBernoulli",
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
    "Laplace",
    "Likelihood",
    "Mixture",
    "NegativeBinomial",
    "Poisson",
    "Prior",
    "StandardNormal",
    "StudentT",
    "VampPrior",
    "export",
]
