"""Functions that keep state are found, and called from one thread."""

import threading
import warnings

import numpy as np
import pytest
import torch
from support import equal, evaluate
from torch import distributions as D
from torch import nn

import crais
from crais.reentry import keeps_state

torch.manual_seed(0)
NET = nn.Sequential(nn.Linear(4, 16), nn.GELU("tanh"), nn.Linear(16, 36)).eval()


class Keeps(nn.Module):
    """Its input, as modules do that look at it again."""

    def __init__(self):
        super().__init__()
        self.net = NET

    def forward(self, z):
        self.z = z
        hidden = self.net(z)
        return hidden + self.net(self.z)


class KeepsForEachThread(threading.local):
    """Which is right in any number of threads."""

    forward = Keeps.forward
    net = staticmethod(NET)

    def __call__(self, z):
        return self.forward(z)


class Messenger:
    """As in Pyro: installed once at a time."""

    def __init__(self):
        self.is_installed = False

    def __enter__(self):
        if self.is_installed:
            raise ValueError("cannot install a Messenger instance twice")
        self.is_installed = True

    def __exit__(self, *_):
        self.is_installed = False


class InsideOf(nn.Module):
    def __init__(self, context):
        super().__init__()
        self.net, self.context = NET, context

    def forward(self, z):
        with self.context:
            return self.net(z)


def counting(z):
    counting.calls += 1
    return NET(z)


counting.calls = 0
ONE_AT_A_TIME = {"keeps its input": Keeps(), "a messenger": InsideOf(Messenger())}
ANY = {"none": NET, "a counter": counting, "of each thread": KeepsForEachThread(), "a lock": InsideOf(threading.Lock())}


@pytest.mark.parametrize("name", ONE_AT_A_TIME | ANY)
def test_state_is_found(name):
    function = (ONE_AT_A_TIME | ANY)[name].__call__
    torch.manual_seed(1)
    found = keeps_state(lambda z: (function(z),), lambda rows: (torch.randn(rows, 4),))
    assert found == (name in ONE_AT_A_TIME)


def evaluated(images, **options):
    return evaluate(images=images.flatten(1), latent=4, chunk=4, **options)


def said(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = run()
    lines = [str(one.message) for one in caught]
    return found, [line for line in lines if "keeps state" in line]


@pytest.mark.parametrize("name", ONE_AT_A_TIME)
def test_the_call_goes_on_with_one_thread_and_says_so(compiled, images, name):
    run = lambda **options: said(lambda: evaluated(images, decoder=ONE_AT_A_TIME[name], **options))
    wanted, lines = run(threads=1)
    assert lines == []  # as it was asked for
    for options in ({}, {"threads": 2}):
        found, lines = run(**options)
        assert len(lines) == 1 and "threads=1" in lines[0]
        equal(found, wanted)


def test_others_are_called_from_several_threads(compiled, images):
    seen = set()

    def decode(z):
        seen.add(threading.get_ident())
        return NET(z)

    result, lines = said(lambda: evaluated(images, decoder=decode, threads=2))
    assert lines == [] and result.summary["threads"] == 2 and len(seen) > 1


def test_densities_that_keep_state(compiled):
    class Density(nn.Module):
        def forward(self, z):
            self.z = z
            value = -0.5 * z.square().sum(1)
            return value - 0.1 * self.z.pow(4).sum(1)

    run = lambda target: crais.log_normalizer(target, dim=2, problems=4, steps=8, threads=2, progress=False)
    found, lines = said(lambda: run(Density().eval()))
    assert len(lines) == 1
    wanted, lines = said(lambda: run(lambda z: -0.5 * z.square().sum(1) - 0.1 * z.pow(4).sum(1)))
    assert lines == [] and found.mean == pytest.approx(wanted.mean, abs=1e-6)


def test_a_log_joint_is_tried_with_the_images_that_are_there(compiled, images):
    """Whose support nothing else says; a distribution that validates refuses any others."""

    def log_joint(z, x):
        return D.Normal(0.0, 1.0).log_prob(z).sum(1) + D.Bernoulli(logits=NET(z)).log_prob(x).sum(1)

    wanted = evaluated(images, decoder=NET)
    grey = (images * 255).to(torch.uint8)
    for x, options in ((images, {}), (grey, {"binarisation": "static:0"}), (grey, {"scale": 255})):
        found = evaluated(x, log_joint=log_joint, **options)
        np.testing.assert_allclose(found.log_likelihood, wanted.log_likelihood, rtol=1e-4)
