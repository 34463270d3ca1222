"""What several tests share: options of short runs, and when results are alike."""

import math

import numpy as np
import torch
from torch.fx.experimental.proxy_tensor import make_fx

import crais

CHEAP = {"steps": 8, "chains": 8, "base": "prior", "chunk": 8, "progress": False}
LOG_2PI = math.log(2 * math.pi)


def evaluate(model=None, images=None, **options):
    """A short run; under a Bernoulli likelihood, unless the options say what the model is."""
    likelihood = {} if "log_joint" in options else {"likelihood": crais.Bernoulli()}
    return crais.evaluate(model, images, **{**likelihood, **CHEAP, **options})


def alike(found, wanted):
    """Estimates by one evaluator, whose numbers are the same to float32's rounding."""
    assert found.summary["evaluator"] == wanted.summary["evaluator"]
    np.testing.assert_allclose(found.log_likelihood, wanted.log_likelihood, rtol=1e-4, atol=1e-3)


def equal(found, wanted):
    """Estimates of the same bits."""
    np.testing.assert_array_equal(found.log_likelihood, wanted.log_likelihood)


def close(found, truth, slack=1e-4, most=0.05):
    """log Z is the truth within 5 standard errors, of at most `most` nats, and `slack`."""
    assert abs(found.mean - truth) < 5 * found.mc_se + slack, (found.mean, found.mc_se, truth)
    assert found.mc_se < most, found.mc_se


def traced_alike(functions, arguments):
    """The trace of `functions` is theirs for any number of rows."""
    traced = make_fx(functions, tracing_mode="symbolic", _allow_non_fake_inputs=True)(*arguments(5))
    for rows in (1, 5, 7):
        inputs = arguments(rows)
        for found, expected in zip(traced(*inputs), functions(*inputs)):
            torch.testing.assert_close(found, expected)


def log_beta(a, b):
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
