"""Layers are told from other functions, and are what they were told to be."""

import copy
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import crais
from crais import captured_model, image_layers, layers

torch.manual_seed(7)
Z, X = torch.randn(3, 5), torch.rand(3, 3, 4)
BINARY, MEANS = crais.Bernoulli(), crais.Gaussian(0.5)
net = nn.Sequential


class Vae(nn.Module):
    """Layers with names of their own, two heads, and activations that are no modules."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc21 = nn.Linear(12, 8), nn.Linear(8, 5)
        self.fc22 = nn.Linear(8, 5, bias=False)
        self.fc3, self.fc4 = nn.Linear(5, 8), nn.Linear(8, 12)

    def encode(self, x):
        hidden = F.relu(self.fc1(x.flatten(1)))
        return self.fc21(hidden), self.fc22(hidden)

    def decode(self, z):
        return self.fc4(F.softplus(self.fc3(z))).reshape(-1, 3, 4)


def recognised(decoder, encoder=None, likelihood=BINARY, prior=None, x=X):
    return layers.recognise(decoder, likelihood, prior or crais.StandardNormal(), encoder, Z, x)


def test_functions_are_recognised_and_stay_what_they_are():
    vae = Vae()
    found = recognised(vae.decode, vae.encode)
    assert found.describe() == {"decoder": "softplus", "encoder": "relu", "likelihood": "bernoulli"}
    torch.testing.assert_close(found.decoder(Z).reshape(-1, 3, 4), vae.decode(Z))
    torch.testing.assert_close(found.encoder(X.flatten(1)), torch.cat(vae.encode(X), 1))
    wanted = crais.StandardNormal().log_prob(Z) + BINARY.log_prob(X, vae.decode(Z))
    torch.testing.assert_close(found.log_joint(Z, X), wanted)
    shapes = {name: tuple(tensor.shape) for name, tensor in found.tensors().items()}
    assert shapes["mlp.encoder.1.weight"] == (10, 8) and shapes["mlp.encoder.1.bias"] == (10,)
    assert not any(tensor.requires_grad for tensor in found.tensors().values())
    with torch.inference_mode():
        assert recognised(vae.decode) is not None


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (nn.Tanh(), "tanh"), (nn.ELU(), "elu"), (nn.ReLU(), "relu"), (nn.Softplus(), "softplus"),
        (nn.LeakyReLU(), "leaky-relu"), (nn.LeakyReLU(0.2), "leaky-relu:0.2"), (nn.Mish(), "mish"),
        (nn.Sigmoid(), "sigmoid"), (nn.SiLU(inplace=True), "silu"), (nn.GELU(), "gelu"),
        (nn.LeakyReLU(-0.2), None), (nn.ELU(0.5), None), (nn.GELU("tanh"), None),
        (nn.Softplus(beta=2), None), (net(nn.Tanh(), nn.Tanh()), None),
    ],
)  # fmt: skip
def test_activations(kind, name):
    decoder = net(nn.Linear(5, 7), kind, nn.Linear(7, 12), nn.Unflatten(1, (3, 4)))
    found = recognised(decoder)
    assert (found and found.describe()["decoder"]) == name
    if found:
        torch.testing.assert_close(found.decoder(Z).reshape(-1, 3, 4), decoder(Z))


def test_heads_of_encoders():
    vae, other = Vae(), Vae()
    both = net(nn.Flatten(), nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 10))
    for encoder, shift in (
        (lambda x: both(x).chunk(2, 1), 0),
        (lambda x: (both(x)[:, :5], both(x)[:, 5:]), 0),
        (lambda x: tuple(reversed(both(x).chunk(2, 1))), 5),
    ):
        found = recognised(vae.decode, encoder)
        torch.testing.assert_close(found.encoder(X.flatten(1)), both(X).roll(shift, 1))
    for encoder in (
        lambda x: vae.encode(x)[0],
        lambda x: (vae.encode(x)[0], 2 * vae.encode(x)[1]),
        lambda x: vae.encode(2 * x - 1),
        lambda x: (vae.encode(x)[0], other.encode(x)[1]),
    ):  # beside which the decoder is known
        found = recognised(vae.decode, encoder)
        assert not found.is_mlp
        assert found.describe()["layers"] == [
            {"kind": "dense", "activation": "softplus"}, {"kind": "dense", "activation": None},
        ]  # fmt: skip
        torch.testing.assert_close(found.decoder(Z).reshape(-1, 3, 4), vae.decode(Z))


def test_likelihoods_and_priors():
    decode = Vae().decode
    for likelihood, name in (
        (crais.Gaussian(0.25), "gaussian:0.25"),
        (crais.ContinuousBernoulli(), "continuous-bernoulli"),
        (crais.Gaussian(torch.full((3, 4), 0.3)), None),
        (crais.Laplace(0.3), None),
    ):
        found = recognised(decode, None, likelihood)
        assert (found and found.describe()["likelihood"]) == name
    assert recognised(decode, prior=crais.GaussianPrior(torch.zeros(5), 1.0)) is None


@pytest.mark.parametrize("likelihood", [crais.Bernoulli, crais.ContinuousBernoulli])
def test_a_sigmoid_at_the_end(likelihood):
    """Of means it is an activation; logits are before that of probabilities, and none after it."""
    decoder = net(nn.Linear(5, 7), nn.SiLU(), nn.Linear(7, 6), nn.LeakyReLU(0.3), nn.Linear(6, 12))
    means = net(decoder, nn.Sigmoid(), nn.Unflatten(1, (3, 4)))
    kinds = ["silu", "leaky-relu:0.3", None]
    for found, activations, wanted in (
        (recognised(decoder), kinds, decoder),
        (recognised(means, None, MEANS), [*kinds[:2], "sigmoid"], means),
        (recognised(means, None, likelihood(probs=True)), kinds, decoder),
    ):
        assert not found.is_mlp
        assert [layer["activation"] for layer in found.describe()["layers"]] == activations
        torch.testing.assert_close(found.decoder(Z), wanted(Z).flatten(1))
    log_p = crais.StandardNormal().log_prob(Z) + likelihood(probs=True).log_prob(X, means(Z))
    torch.testing.assert_close(found.log_joint(Z, X), log_p)
    assert recognised(means, None, likelihood()) is None
    assert recognised(net(decoder, nn.ReLU()), None, MEANS) is None
    for other in (decoder, net(decoder, nn.Tanh())):
        assert recognised(other, None, likelihood(probs=True)) is None
    mlp = Vae()
    assert recognised(lambda z: mlp.decode(z).sigmoid(), mlp.encode, likelihood(True)).is_mlp


def test_values_that_are_looked_at_are_no_layers():
    plain = nn.Linear(5, 12)
    seen = []

    def kept(z):
        made = plain(z).view(-1, 3, 4)
        seen.append(made)
        return made if len(seen) < 2 else made + 1

    shifted = lambda z, bias: F.conv2d(plain(z).view(-1, 1, 3, 4), torch.ones(1, 1, 1, 1), bias).view(-1, 3, 4)

    def failing(z):
        seen.append(z)
        if len(seen) % 2 == 0:
            raise ValueError("again")
        return plain(z)

    buffer = torch.zeros(3, 12)

    def written(z):
        with torch.no_grad():
            buffer[: len(z), :6] = z[:, :1]
        return plain(z) + buffer[: len(z)]

    for decoder in (
        lambda z: plain(z) if z.max() > 0 else plain(+z),
        lambda z: plain(torch.tensor(z.detach().numpy())),
        lambda z: plain(torch.tensor(z.tolist())),
        lambda z: plain(z) * float(z[0, 0]),
        lambda z: plain(z) if torch.equal(z, z) else z,
        lambda z: plain(z + torch.randn(5)),
        lambda z: F.linear(z, plain.weight, torch.tensor(z.numpy())[0, :1].expand(12)),
        lambda z: shifted(z, 1e-4 * z.mean(0)[:1]),  # less than what agreement asks for
        lambda z: shifted(z, 1e-4 * torch.randn(1)),
        kept,
        written,
        failing,
    ):
        assert recognised(decoder) is None
    assert recognised(lambda z: shifted(z, torch.ones(1))) is not None


def test_what_is_recognised_computes_what_the_decoder_does(monkeypatch):
    """Whatever the trace has missed."""
    decoder = net(nn.Linear(5, 7), nn.ELU(), nn.Linear(7, 12), nn.Unflatten(1, (3, 4)))
    assert recognised(decoder) is not None
    monkeypatch.setitem(layers._ACTIVATIONS, "elu", lambda *scales: "relu")
    assert recognised(decoder) is None


def test_recognition_does_not_import_the_compiler():
    script = """if True:
        import sys, torch, crais
        from crais import captured_model, image_layers, layers
        decoder = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ELU(), torch.nn.Linear(7, 12))
        z, x, prior = torch.randn(3, 5), torch.rand(3, 12), crais.StandardNormal()
        assert layers.recognise(decoder, crais.Bernoulli(), prior, None, z, x) is not None
        assert "torch._dynamo" not in sys.modules and "sympy" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", script], check=True)


class Residual(nn.Module):
    """x + f(x)."""

    def __init__(self, *body):
        super().__init__()
        self.body = net(*body)

    def forward(self, x):
        return x + self.body(x)


class Made(nn.Module):
    """A function of images as a module."""

    def __init__(self, function):
        super().__init__()
        self.forward = function


def same(channels=6):
    return nn.Conv2d(channels, channels, 3, padding=1)


def of_units(shape=(6, 4, 3), *more):
    return nn.Linear(5, int(np.prod(shape))), *more, nn.Unflatten(1, shape)


def start():
    return of_units((6, 4, 3), nn.ELU())


def preceded(groups):
    """A block of a generator."""
    norms = [nn.GroupNorm(groups, 6, eps=1e-3) for _ in range(2)]
    return Residual(norms[0], nn.SiLU(), same(), norms[1], nn.SiLU(), same())


LATENT_IMAGE = nn.Unflatten(1, (5, 1, 1))

# Decoders, and what is kept of the layers: their kinds, and where residual connections begin.
KNOWN = {
    "batch norm after all": ("dcc", net(
        *of_units((8, 3, 4)), nn.BatchNorm2d(8), nn.ELU(),
        nn.ConvTranspose2d(8, 6, 4, 2, 1, bias=False), nn.BatchNorm2d(6), nn.ELU(inplace=True),
        nn.Conv2d(6, 4, 3, 1, 1, bias=False), nn.BatchNorm2d(4, affine=False),
    )),
    "nothing between two layers": ("dc", net(
        *of_units((6, 2, 2)), nn.ConvTranspose2d(6, 5, 3, 2),
        nn.Tanh(), nn.Conv2d(5, 3, (3, 2), (1, 2), (0, 1), dilation=(2, 1)),
    )),
    "enlarged images": ("dcc", net(
        *of_units((6, 2, 2), nn.ELU()), nn.Upsample(scale_factor=2),
        nn.Conv2d(6, 5, 3, padding=1), nn.BatchNorm2d(5), nn.ELU(), nn.Upsample((12, 8)),
        nn.Conv2d(5, 2, (2, 5), padding=(0, 1)),
    )),
    "activation of an enlarged image": ("dcc", net(
        *of_units((6, 2, 2)), nn.Upsample(scale_factor=2), nn.ELU(),
        nn.Conv2d(6, 5, 3, padding=1), nn.Upsample(scale_factor=2), nn.ELU(), nn.Conv2d(5, 1, 3),
    )),
    "dense at the end": ("cd", net(
        LATENT_IMAGE, nn.ConvTranspose2d(5, 7, 3), nn.Softplus(), nn.Flatten(), nn.Linear(63, 12),
    )),
    "sums before activations": ("dcc0cc2c", net(
        *of_units(), Residual(nn.SiLU(), same(), nn.SiLU(), same()),
        Residual(nn.SiLU(), same(), nn.SiLU(), same()), nn.SiLU(), nn.Conv2d(6, 2, 3),
    )),
    "sums after activations": ("ccc0cc2c", net(
        LATENT_IMAGE, nn.ConvTranspose2d(5, 6, (4, 3)), nn.BatchNorm2d(6), nn.ReLU(),
        Residual(same(), nn.BatchNorm2d(6), nn.ReLU(True), same(), nn.BatchNorm2d(6)),
        nn.ReLU(True),
        Residual(same(), nn.BatchNorm2d(6), nn.ReLU(True), same(), nn.BatchNorm2d(6)),
        nn.ReLU(True), nn.ConvTranspose2d(6, 1, 2, 2),
    )),
    "a sum of an enlarged image": ("dccc1c", net(
        *of_units((6, 2, 2)), nn.ELU(), nn.Conv2d(6, 4, 1), nn.Upsample(scale_factor=(3, 2)),
        Residual(nn.ELU(), same(4), nn.ELU(), same(4)), nn.ELU(), nn.Conv2d(4, 1, 3),
    )),
    "crops of convolutions": ("dciici", net(
        *start(), nn.Conv2d(6, 5, 3, 1, 1), nn.Tanh(), Made(lambda x: x[..., 1:3, 1:]),
        nn.Conv2d(5, 4, 3, 2, 3, dilation=2), nn.Sigmoid(), Made(lambda x: x[:, 1:4, 1:]),
    )),
    "a crop of units": ("dc", net(
        nn.Linear(5, 90), nn.ELU(), Made(lambda x: x[:, 7:79:2]), nn.Unflatten(1, (6, 2, 3)),
        nn.Conv2d(6, 2, 2),
    )),
    "some of the latents": ("ddd", net(Made(lambda z: z[:, 1:4]), nn.Linear(3, 8), nn.ELU(), nn.Linear(8, 9))),
    "latents as an image with pads": ("icc", net(
        LATENT_IMAGE, nn.ZeroPad2d(1), nn.Conv2d(5, 4, 2), nn.ReLU(), nn.PixelShuffle(2),
    )),
    "a row": ("dcic", net(*start(), same(), nn.ELU(), Made(lambda x: x[:, :, 2]), nn.Conv1d(6, 2, 2))),
    "pads": ("dicicic", net(
        *start(), nn.ZeroPad2d((1, 2, 0, 3)), nn.Conv2d(6, 4, 3), nn.Softplus(),
        nn.ZeroPad2d(1), nn.ConvTranspose2d(4, 3, 3, 2), nn.ReLU(), nn.ZeroPad2d((-1, 1, 2, -2)),
        nn.Conv2d(3, 2, 3),
    )),
    "other pads": ("diciciic", net(
        *start(), nn.ReflectionPad2d((1, 0, 2, 1)), nn.Conv2d(6, 4, 3), nn.ELU(),
        nn.ReplicationPad2d(2), nn.Conv2d(4, 2, 3), nn.Flatten(2), nn.ReLU(), nn.ReflectionPad1d(1),
        nn.ReplicationPad1d((0, 2)), nn.Conv1d(2, 1, 4),
    )),
    "means": ("diciiici", net(
        *start(), nn.AvgPool2d(2, ceil_mode=True), nn.Conv2d(6, 4, 2, padding=1), nn.ReLU(),
        nn.AvgPool2d(2, 1, 1, count_include_pad=False), nn.AdaptiveAvgPool2d((2, 3)), nn.Tanh(),
        nn.AdaptiveAvgPool2d((2, 1)), nn.Conv2d(4, 2, 1), nn.ELU(), nn.AdaptiveAvgPool2d(1),
    )),
    "means along axes": ("dcicid", net(
        *start(), same(), nn.ELU(), Made(lambda x: x.mean(2)), nn.Conv1d(6, 5, 2), nn.ELU(),
        Made(lambda x: x.mean(2)), nn.Linear(5, 9),
    )),
    "bilinear": ("diciicii", net(
        *start(), nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(6, 3, 3), nn.SiLU(),
        nn.UpsamplingBilinear2d((9, 7)), nn.ELU(), nn.Upsample((5, 4), mode="bilinear"),
        nn.Conv2d(3, 1, 3), nn.Upsample(80, mode="bilinear"), nn.AvgPool2d(20), nn.Sigmoid(),
    )),
    "batch norm of what is interpolated": ("dcici", net(
        *of_units(), nn.Upsample(scale_factor=2, mode="bilinear"), nn.BatchNorm2d(6),
        nn.ELU(), nn.Conv2d(6, 4, 3), nn.Upsample(7, mode="bicubic"), nn.BatchNorm2d(4), nn.ReLU(),
        nn.Conv2d(4, 2, 3), nn.ZeroPad2d(1), nn.BatchNorm2d(2),
    )),
    "other interpolation": ("dicinic", net(
        *start(), nn.Upsample(7), nn.Conv2d(6, 4, 3), nn.ReLU(), nn.Upsample(9, mode="bicubic"),
        nn.GroupNorm(2, 4), nn.Tanh(), nn.Upsample((4, 5), mode="nearest-exact"),
        nn.Conv2d(4, 1, 3),
    )),
    "along one axis": ("dcciiicc", net(
        *of_units((6, 4)), nn.ReLU(), nn.ConvTranspose1d(6, 5, 4, 2, 1),
        nn.BatchNorm1d(5), nn.LeakyReLU(0.2), nn.Upsample(scale_factor=2),
        nn.Conv1d(5, 4, 5, padding=2), nn.ELU(), Made(lambda x: x[..., 1:13]),
        nn.AvgPool1d(2), nn.ConstantPad1d((1, 0), 0.0),
        nn.ConvTranspose1d(4, 2, 3, 2, 1, output_padding=1), nn.ELU(),
        nn.Conv1d(2, 2, 3, dilation=2),
    )),
    "groups of a convolution": ("dcncncnc", net(
        *start(), nn.ConvTranspose2d(6, 8, 3, 2, 1, 1), nn.GroupNorm(4, 8), nn.SiLU(),
        nn.Conv2d(8, 6, 3), nn.GroupNorm(1, 6, eps=1e-2), nn.ReLU(), nn.Conv2d(6, 5, 2),
        nn.GroupNorm(5, 5, affine=False), nn.Tanh(), nn.Conv2d(5, 2, 3),
    )),
    "units of a dense layer": ("dndndnd", net(
        nn.Linear(5, 12), nn.LayerNorm(12), nn.GELU(), nn.Linear(12, 8), nn.GroupNorm(4, 8),
        nn.ELU(), nn.Linear(8, 8), nn.LayerNorm(8, elementwise_affine=False), nn.Linear(8, 12),
    )),
    "whole images": ("dcncnc", net(
        *start(), same(), nn.LayerNorm([6, 4, 3]), nn.ELU(), same(), nn.LayerNorm([4, 3]),
        nn.ReLU(), nn.Conv2d(6, 2, 3),
    )),
    "after an activation": ("ddndcinc", net(
        nn.Linear(5, 12), nn.ReLU(), nn.LayerNorm(12), nn.Linear(12, 72), nn.ELU(),
        nn.Unflatten(1, (6, 4, 3)), same(), nn.ELU(), nn.GroupNorm(2, 6), nn.Conv2d(6, 2, 3),
    )),
    "before blocks": ("dncnc0ncnc2nc", net(
        *of_units(), preceded(2), preceded(3), nn.GroupNorm(1, 6), nn.SiLU(), nn.Conv2d(6, 2, 3),
    )),
    "of an enlarged image, cropped": ("dcnic", net(
        *start(), nn.Conv2d(6, 4, 1), nn.Upsample(scale_factor=2), nn.GroupNorm(2, 4), nn.ELU(),
        Made(lambda x: x[:, :, 1:7]), nn.Conv2d(4, 1, 3),
    )),
}  # fmt: skip
# Each kind of layer once.
EVALUATED = (
    "sums after activations", "crops of convolutions", "other pads", "means",
    "batch norm of what is interpolated", "along one axis", "before blocks",
    "of an enlarged image, cropped",
)  # fmt: skip


def uneven(network):
    """With moments and weights of normalisations as after training."""
    for one in network.modules():
        if isinstance(one, (nn.BatchNorm1d, nn.BatchNorm2d)):
            one.running_mean.normal_()
            one.running_var.uniform_(0.5, 2.0)
        if "Norm" in type(one).__name__ and one.weight is not None:
            one.weight.data.normal_()
            one.bias.data.normal_()
    return network.eval()


def in_float64(network):
    """Its weights are float32's; its sums are not."""

    def wide(part):
        wider = {name: one.double() for name, one in vars(part).items() if torch.is_tensor(one)}
        return replace(part, **wider)

    return layers.Network(
        [replace(wide(one), normalisation=one.normalisation and wide(one.normalisation)) for one in network.layers]
    )


def summary(layer):
    """As in the table."""
    skip = str(layer.skip.start) if layer.skip else ""
    return layer.kind[0] + skip + ("n" if layer.normalisation else "")


@pytest.mark.parametrize("kind", KNOWN)
def test_layers_are_what_they_were(kind):
    kinds, decoder = KNOWN[kind]
    with torch.no_grad():
        output = uneven(decoder)(Z)
    found = recognised(decoder, likelihood=MEANS, x=torch.rand_like(output))
    assert "".join(map(summary, found.decoder.layers)) == kinds
    z = torch.randn(4, 5, dtype=torch.float64)
    wanted = copy.deepcopy(decoder).double()(z).detach().flatten(1)
    torch.testing.assert_close(in_float64(found.decoder)(z), wanted, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("kind", EVALUATED)
def test_the_evaluator_takes_them(compiled, kind):
    """Chains are those of PyTorch's own evaluation."""
    decoder = uneven(KNOWN[kind][1])
    torch.manual_seed(3)
    with torch.no_grad():
        x = decoder(torch.randn(6, 5))
        x += 0.5 * torch.randn(x.shape)
    run = lambda decode: crais.evaluate(
        decoder=decode, images=x, likelihood=MEANS, latent=5, steps=4, chains=8, base="prior",
        force_dtype="float32", progress=False,
    )  # fmt: skip
    found, wanted = run(decoder), run(lambda z: decoder(z * torch.ones(())))
    assert found.summary["evaluator"] != "pytorch"
    assert wanted.summary["evaluator"] == "pytorch"
    np.testing.assert_allclose(found.log_likelihood, wanted.log_likelihood, atol=0.01)


@pytest.mark.parametrize("likelihood", ("logits", "means", "continuous"))
def test_bases_are_those_of_the_models_own_outputs(compiled, likelihood):
    """Curvatures of probabilities are about logits too, which the evaluator computes."""
    torch.manual_seed(0)
    logits = net(
        nn.Linear(4, 32), nn.ELU(), nn.Unflatten(1, (8, 2, 2)), nn.ConvTranspose2d(8, 4, 4, 2, 1),
        nn.ELU(), nn.Conv2d(4, 1, 3, 1, 1),
    ).eval()  # fmt: skip
    with torch.no_grad():
        logits[-1].weight *= 4
        x = torch.bernoulli(logits(2 * torch.randn(8, 4)).sigmoid())
    means = net(logits, nn.Sigmoid())
    hidden = lambda z: means(z * torch.ones(()))
    continuous = crais.ContinuousBernoulli(probs=True)
    (decoder, pixels), (other, of_other) = {
        "logits": ((means, crais.Bernoulli(probs=True)), (logits, BINARY)),
        "means": ((means, MEANS), (hidden, MEANS)),
        "continuous": ((means, continuous), (hidden, continuous)),
    }[likelihood]
    run = lambda decode, pixels: crais.evaluate(
        decoder=decode, images=x, likelihood=pixels, latent=4, base="laplace", steps=24, chains=8,
        force_dtype="float32", progress=False,
    )  # fmt: skip
    found, wanted = run(decoder, pixels), run(other, of_other)
    assert found.summary["evaluator"] != "pytorch"
    assert found.ess == pytest.approx(wanted.ess, abs=0.01)
    np.testing.assert_allclose(found.log_likelihood, wanted.log_likelihood, atol=0.01)


def test_weights_may_be_computed():
    """By weight and spectral normalisation, or by hand."""
    by_weight = nn.utils.parametrizations.weight_norm
    by_spectrum = nn.utils.parametrizations.spectral_norm
    last = nn.Conv2d(4, 2, 2)
    blocks = net(
        *of_units((6, 4, 3)), nn.ELU(), by_weight(same()), nn.ELU(), by_spectrum(nn.Conv2d(6, 4, 2)), nn.ELU()
    ).eval()
    decoder = lambda z: F.conv2d(blocks(z), last.weight, 3 * last.bias)
    before = copy.deepcopy(blocks.state_dict())
    x = torch.rand_like(decoder(Z))
    found = recognised(decoder, x=x)
    torch.testing.assert_close(found.decoder(Z), decoder(Z).flatten(1))
    assert all(torch.equal(one, before[name]) for name, one in blocks.state_dict().items())
    drawn = lambda z: F.conv2d(blocks(z), torch.bernoulli(torch.full_like(last.weight, 0.5)))
    assert recognised(drawn, x=x) is None


def test_what_has_no_known_layers():
    plain = net(nn.Linear(5, 7), nn.ELU(), nn.Linear(7, 12))
    first, second, last = nn.Linear(5, 9), nn.Linear(9, 9), nn.Linear(9, 12)
    steps = torch.tensor(2.0)

    def twice(z):
        start = F.elu(first(z))
        return last(F.elu(second(F.elu(second(start) + start)) + start))

    def of_outputs(z):
        start = F.silu(first(z))
        return last(F.silu(second(start) + start))

    for decoder in (
        net(plain, nn.Tanh()),
        net(plain, nn.Upsample(scale_factor=2)),
        net(plain, nn.LayerNorm(12)),
        net(nn.Linear(5, 7), nn.ELU(), nn.Linear(7, 11)),
        lambda z: plain(z) + 1,
        lambda z: plain(2 * z),
        lambda z: plain(z) * steps,
        lambda z: plain(z).flip(1),
        lambda z: plain(z) + z.sum(1, keepdim=True),
        lambda z: plain(z).reshape(3, 3, 4).transpose(1, 2),
        twice,
        of_outputs,
        lambda z: last(F.elu(torch.add(second(F.elu(first(z))), first(z), alpha=2))),
        lambda z: last(F.elu(second(F.elu(first(z))) + F.elu(first(2 * z)))),
        lambda z: last(F.elu(second(F.elu(first(z))) + first(z)[:1])),
        net(first, Residual(nn.ELU(), second), nn.BatchNorm1d(9).eval(), nn.ELU(), last),
        net(first, nn.ELU(), nn.Linear(9, 12), Residual(nn.ELU(), nn.Linear(12, 12))),
    ):
        assert recognised(decoder) is None, decoder


def test_what_convolutions_are_not_known():
    network = lambda *after: net(*of_units((4, 4, 4), nn.ELU()), *after, nn.Flatten()).eval()
    x, one, elu = torch.rand(3, 4, 4, 4), same(4), nn.ELU()
    for decoder in (
        network(nn.Conv2d(4, 4, 3, 1, 1, groups=2)),
        network(nn.BatchNorm2d(4), one),
        network(one, elu, nn.Upsample(8), nn.Conv2d(4, 4, 2, 2)),
        network(one, nn.LayerNorm([4, 4, 4])),
        network(one, nn.LayerNorm(4), one),
        network(nn.GroupNorm(2, 4), elu, Residual(one), elu, one),
        network(one, nn.GroupNorm(2, 4), Residual(elu, one), elu, one),
        network(one, nn.InstanceNorm2d(4), elu, one),
        network(one, elu, nn.Upsample(1500, mode="bilinear"), nn.AvgPool2d(375)),
        network(one, elu, nn.AvgPool3d((2, 1, 1), (2, 1, 1)), nn.ConvTranspose2d(2, 4, 1)),
        network(one, elu, nn.CircularPad2d(1), nn.Conv2d(4, 4, 3)),
        network(one, elu, nn.Upsample(4, mode="bilinear"), nn.BatchNorm2d(4), one),
        network(one, Made(lambda x: x.mean(1, keepdim=True).expand(-1, 4, -1, -1))),
        network(one, elu, nn.ConstantPad2d(1, 0.5), nn.Conv2d(4, 4, 3)),
        network(one, elu, nn.ConstantPad3d((0, 0, 0, 0, 1, 0), 0.0), nn.Conv2d(5, 4, 3, 1, 1)),
        network(one, elu, nn.MaxPool2d(2), nn.ConvTranspose2d(4, 4, 2, 2)),
        network(one, elu, nn.Upsample(8), nn.ConvTranspose2d(4, 4, 3, 1, 3)),
    ):
        assert recognised(decoder, x=x) is None, decoder
    assert not recognised(network(one), x=x).is_mlp


def test_the_reader_has_the_same_limits():
    """Export writes within what the C++ reader holds files to, and cannot ask it."""
    text = (Path(__file__).resolve().parents[2] / "models/model_manifest.cpp").read_text()
    for name, limit in (
        ("kValueTolerance", captured_model.VALUE_TOLERANCE), ("kGradTolerance", captured_model.GRAD_TOLERANCE),
        ("kMostConnections", image_layers.MOST_CONNECTIONS), ("kMostUnits", image_layers.MOST_UNITS),
    ):  # fmt: skip
        shift, number = re.search(rf"\b{name} = (?:int64_t\{{1\}} << (\d+)|([0-9.e+-]+))[,;]", text).groups()
        assert limit == (2 ** int(shift) if shift else float(number))
