"""Layers are told from other functions, and are what they were told to be."""

import copy
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import crais
from crais import layers

Z, X = torch.randn(3, 5), torch.rand(3, 3, 4)


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


def recognised(decoder, encoder=None, likelihood=None, prior=None):
    return layers.recognise(
        decoder, likelihood or crais.Bernoulli(), prior or crais.StandardNormal(), encoder, Z, X
    )


def test_functions_are_recognised_and_stay_what_they_are():
    vae = Vae()
    found = recognised(vae.decode, vae.encode)
    assert found.describe() == {"decoder": "softplus", "encoder": "relu", "likelihood": "bernoulli"}
    torch.testing.assert_close(found.decoder(Z).reshape(-1, 3, 4), vae.decode(Z))
    torch.testing.assert_close(found.encoder(X.flatten(1)), torch.cat(vae.encode(X), 1))
    wanted = crais.StandardNormal().log_prob(Z) + crais.Bernoulli().log_prob(X, vae.decode(Z))
    torch.testing.assert_close(found.log_joint(Z, X), wanted)
    shapes = {name: tuple(tensor.shape) for name, tensor in found.tensors().items()}
    assert shapes["mlp.encoder.1.weight"] == (10, 8) and shapes["mlp.encoder.1.bias"] == (10,)
    assert not any(tensor.requires_grad for tensor in found.tensors().values())


@pytest.mark.parametrize("probs", [None, True])
def test_a_continuous_bernoulli_decoder_is_known(probs, compiled):
    """The numbers of the kernels are those of PyTorch: the same chains but for rounding."""
    likelihood = crais.ContinuousBernoulli(probs=probs)
    layers_of = [nn.Linear(5, 9), nn.Tanh(), nn.Linear(9, 12)] + ([nn.Sigmoid()] if probs else [])
    decoder = nn.Sequential(*layers_of, nn.Unflatten(1, (3, 4))).eval()
    found = recognised(decoder, likelihood=likelihood)
    assert found.describe()["likelihood"] == "continuous-bernoulli"
    wanted = crais.StandardNormal().log_prob(Z) + likelihood.log_prob(X, decoder(Z))
    torch.testing.assert_close(found.log_joint(Z, X), wanted)

    def hidden(z):
        return decoder(z).roll(1, 0).roll(-1, 0)

    same = {"latent": 5, "likelihood": likelihood, "base": "laplace", "steps": 32, "progress": False}
    known, unknown = (crais.evaluate(None, X, decoder=f, **same) for f in (decoder, hidden))
    assert known.summary["evaluator"] != "pytorch" and unknown.summary["evaluator"] == "pytorch"
    apart = np.abs(known.log_likelihood - unknown.log_likelihood)
    assert (apart < 5 * np.hypot(known.std_error, unknown.std_error) + 1e-3).all()


def test_every_activation_and_head():
    for kind, name in (
        (nn.Tanh(), "tanh"), (nn.ELU(), "elu"), (nn.ReLU(), "relu"), (nn.Softplus(), "softplus"),
        (nn.LeakyReLU(), "leaky-relu"), (nn.LeakyReLU(0.2), "leaky-relu:0.2"),
        (nn.Sigmoid(), "sigmoid"), (nn.SiLU(inplace=True), "silu"), (nn.GELU(), "gelu"),
        (nn.Mish(), "mish"),
    ):
        decoder = nn.Sequential(nn.Linear(5, 7), kind, nn.Linear(7, 12), nn.Unflatten(1, (3, 4)))
        found = recognised(decoder)
        assert found.describe()["decoder"] == name
        torch.testing.assert_close(found.decoder(Z).reshape(-1, 3, 4), decoder(Z))
    both = nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 10))
    for encoder in (
        lambda x: both(x).chunk(2, 1),
        lambda x: (both(x)[:, :5], both(x)[:, 5:]),
    ):
        found = recognised(Vae().decode, encoder)
        torch.testing.assert_close(found.encoder(X.flatten(1)), both(X))
    swapped = recognised(Vae().decode, lambda x: tuple(reversed(both(x).chunk(2, 1))))
    torch.testing.assert_close(swapped.encoder(X.flatten(1)), both(X).roll(5, 1))


def test_no_mode_hides_a_layer():
    decoder = nn.Sequential(nn.Linear(5, 7), nn.ELU(), nn.Linear(7, 12), nn.Unflatten(1, (3, 4)))
    with torch.inference_mode():
        assert recognised(decoder) is not None


def test_values_that_are_looked_at_are_no_layers():
    plain = nn.Linear(5, 12)
    seen = []

    def kept(z):
        made = plain(z).view(-1, 3, 4)
        seen.append(made)
        return made if len(seen) < 2 else made + 1

    def shifted(z, bias):
        return F.conv2d(plain(z).view(-1, 1, 3, 4), torch.ones(1, 1, 1, 1), bias).view(-1, 3, 4)

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


def test_recognition_does_not_import_the_compiler():
    script = """if True:
        import sys, torch, crais
        from crais import layers
        decoder = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ELU(), torch.nn.Linear(7, 12))
        z, x, prior = torch.randn(3, 5), torch.rand(3, 12), crais.StandardNormal()
        assert layers.recognise(decoder, crais.Bernoulli(), prior, None, z, x) is not None
        assert "torch._dynamo" not in sys.modules and "sympy" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", script], check=True)


def test_one_standard_deviation():
    decode = Vae().decode
    found = recognised(decode, None, crais.Gaussian(0.25))
    assert found.describe()["likelihood"] == "gaussian:0.25"
    assert recognised(decode, None, crais.Gaussian(torch.full((3, 4), 0.3))) is None
    assert recognised(decode, None, crais.Laplace(0.3)) is None
    assert recognised(decode, prior=crais.GaussianPrior(torch.zeros(5), 1.0)) is None


def test_what_has_no_known_layers():
    def network(*between, out=12):
        return nn.Sequential(nn.Linear(5, 7), *between, nn.Linear(7, out))

    plain = network(nn.ELU())
    steps = torch.tensor(2.0)
    for decoder in (
        nn.Sequential(plain, nn.Sigmoid()),
        nn.Sequential(plain, nn.Tanh()),
        nn.Sequential(plain, nn.Upsample(scale_factor=2)),
        network(nn.LeakyReLU(-0.2)),
        network(nn.ELU(0.5)),
        network(nn.GELU("tanh")),
        network(nn.Softplus(beta=2)),
        network(nn.Tanh(), nn.Tanh()),
        nn.Sequential(plain, nn.LayerNorm(12)),
        network(nn.ELU(), out=11),
        lambda z: plain(z) + 1,
        lambda z: plain(2 * z),
        lambda z: plain(z) * steps,
        lambda z: plain(z).flip(1),
        lambda z: plain(z) + z.sum(1, keepdim=True),
        lambda z: plain(z).reshape(3, 3, 4).transpose(1, 2),
        lambda z: plain(z) if z.sum() > -100 else plain(-z),
    ):
        assert recognised(decoder) is None, decoder


def test_each_layer_has_its_activation():
    decoder = nn.Sequential(
        nn.Linear(5, 7), nn.SiLU(), nn.Linear(7, 6), nn.LeakyReLU(0.3), nn.Linear(6, 12)
    )
    means = nn.Sequential(decoder, nn.Sigmoid(), nn.Unflatten(1, (3, 4)))
    found = recognised(decoder)
    assert not found.is_mlp
    kinds = ["silu", "leaky-relu:0.3", None]
    assert [layer["activation"] for layer in found.describe()["layers"]] == kinds
    torch.testing.assert_close(found.decoder(Z), decoder(Z))
    found = recognised(means, None, crais.Gaussian(0.25))
    assert found.describe()["layers"][-1] == {"kind": "dense", "activation": "sigmoid"}
    torch.testing.assert_close(found.decoder(Z).reshape(-1, 3, 4), means(Z))
    assert recognised(means) is None  # logits are none after a sigmoid
    binary = recognised(means, None, crais.Bernoulli(probs=True))
    assert [layer["activation"] for layer in binary.describe()["layers"]] == kinds
    torch.testing.assert_close(binary.decoder(Z), decoder(Z))
    wanted = crais.StandardNormal().log_prob(Z) + crais.Bernoulli(True).log_prob(X, means(Z))
    torch.testing.assert_close(binary.log_joint(Z, X), wanted)
    for other in (decoder, nn.Sequential(decoder, nn.Tanh())):
        assert recognised(other, None, crais.Bernoulli(probs=True)) is None
    mlp = Vae()
    found = recognised(lambda z: mlp.decode(z).sigmoid(), mlp.encode, crais.Bernoulli(True))
    assert found.describe() == {"decoder": "softplus", "encoder": "relu", "likelihood": "bernoulli"}
    assert recognised(nn.Sequential(decoder, nn.ReLU()), None, crais.Gaussian(0.25)) is None


def test_a_decoder_is_known_beside_any_encoder():
    vae, other = Vae(), Vae()
    for encoder in (
        lambda x: vae.encode(x)[0],
        lambda x: (vae.encode(x)[0], 2 * vae.encode(x)[1]),
        lambda x: vae.encode(2 * x - 1),
        lambda x: (vae.encode(x)[0], other.encode(x)[1]),
    ):
        found = recognised(vae.decode, encoder)
        assert not found.is_mlp
        assert found.describe()["layers"] == [
            {"kind": "dense", "activation": "softplus"}, {"kind": "dense", "activation": None},
        ]
        torch.testing.assert_close(found.decoder(Z).reshape(-1, 3, 4), vae.decode(Z))


def uneven(network):
    """With moments and weights of normalisations as after training."""
    for one in network.modules():
        if isinstance(one, (nn.BatchNorm1d, nn.BatchNorm2d)):
            for tensor in (one.running_mean, one.weight, one.bias):
                if tensor is not None:
                    tensor.data.normal_()
            one.running_var.uniform_(0.5, 2.0)
        if isinstance(one, (nn.GroupNorm, nn.LayerNorm)) and one.weight is not None:
            one.weight.data.normal_()
            one.bias.data.normal_()
    return network.eval()


class Residual(nn.Module):
    """x + f(x)."""

    def __init__(self, *body):
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x):
        return x + self.body(x)


def same(channels=6):
    return nn.Conv2d(channels, channels, 3, padding=1)


RESIDUAL = {
    "activation first": nn.Sequential(
        nn.Linear(5, 6 * 4 * 3), nn.Unflatten(1, (6, 4, 3)),
        Residual(nn.SiLU(), same(), nn.SiLU(), same()),
        Residual(nn.SiLU(), same(), nn.SiLU(), same()),
        nn.SiLU(), nn.Conv2d(6, 2, 3),
    ),
    "after the activation": nn.Sequential(
        nn.Unflatten(1, (5, 1, 1)), nn.ConvTranspose2d(5, 6, (4, 3)), nn.BatchNorm2d(6), nn.ReLU(),
        Residual(same(), nn.BatchNorm2d(6), nn.ReLU(True), same(), nn.BatchNorm2d(6)),
        nn.ReLU(True),
        Residual(same(), nn.BatchNorm2d(6), nn.ReLU(True), same(), nn.BatchNorm2d(6)),
        nn.ReLU(True),
        nn.ConvTranspose2d(6, 1, 2, 2),
    ),
    "enlarged": nn.Sequential(
        nn.Linear(5, 6 * 2 * 2), nn.Unflatten(1, (6, 2, 2)), nn.ELU(), nn.Conv2d(6, 4, 1),
        nn.Upsample(scale_factor=(3, 2)), Residual(nn.ELU(), same(4), nn.ELU(), same(4)), nn.ELU(),
        nn.Conv2d(4, 1, 3),
    ),
    "dense": nn.Sequential(
        nn.Linear(5, 9), Residual(nn.ELU(), nn.Linear(9, 7), nn.ELU(), nn.Linear(7, 9)), nn.ELU(),
        nn.Linear(9, 12),
    ),
}


def described(decoder, likelihood):
    """What a decoder is recognised as, and the shape of what it makes: it stays what it is."""
    output = uneven(decoder)(Z).detach()
    x = torch.rand_like(output)
    found = layers.recognise(decoder, likelihood, crais.StandardNormal(), None, Z, x)
    assert not found.is_mlp
    torch.testing.assert_close(found.decoder(Z).reshape(output.shape), output)
    return found.describe(), output.shape


@pytest.mark.parametrize("kind", RESIDUAL)
def test_residual_connections_are_recognised_and_stay_what_they_are(kind):
    found, _ = described(RESIDUAL[kind], crais.Bernoulli())
    skips = [layer["skip"] for layer in found["layers"] if "skip" in layer]
    starts = {
        "activation first": [0, 2], "after the activation": [0, 2], "enlarged": [1], "dense": [0],
    }[kind]
    assert [skip["from"] for skip in skips] == starts
    assert all(skip["before_activation"] == (kind != "after the activation") for skip in skips)


def test_what_residual_connections_are_not_known():
    first, second, last = nn.Linear(5, 9), nn.Linear(9, 9), nn.Linear(9, 12)

    def twice(z):
        start = F.elu(first(z))
        return last(F.elu(second(F.elu(second(start) + start)) + start))

    def of_outputs(z):
        start = F.silu(first(z))
        return last(F.silu(second(start) + start))

    for decoder in (
        twice,
        of_outputs,
        lambda z: last(F.elu(torch.add(second(F.elu(first(z))), first(z), alpha=2))),
        lambda z: last(F.elu(second(F.elu(first(z))) + F.elu(first(2 * z)))),
        lambda z: last(F.elu(second(F.elu(first(z))) + first(z)[:1])),
        lambda z: last(F.elu(second(F.elu(first(z))) + 1)),
        nn.Sequential(first, Residual(nn.ELU(), second), nn.BatchNorm1d(9).eval(), nn.ELU(), last),
        nn.Sequential(first, nn.ELU(), nn.Linear(9, 12), Residual(nn.ELU(), nn.Linear(12, 12))),
    ):
        assert recognised(decoder) is None, decoder


CONVOLUTIONAL = {
    "batch norm after all": nn.Sequential(
        nn.Linear(5, 8 * 3 * 4), nn.Unflatten(1, (8, 3, 4)), nn.BatchNorm2d(8), nn.ELU(),
        nn.ConvTranspose2d(8, 6, 4, 2, 1, bias=False), nn.BatchNorm2d(6), nn.ELU(inplace=True),
        nn.Conv2d(6, 4, 3, 1, 1, bias=False), nn.BatchNorm2d(4, affine=False),
    ),
    "latents as an image": nn.Sequential(
        nn.Unflatten(1, (5, 1, 1)), nn.ConvTranspose2d(5, 7, (3, 4)), nn.ReLU(True),
        nn.ConvTranspose2d(7, 4, 3, 2, 1, output_padding=1),
    ),
    "nothing between two layers": nn.Sequential(
        nn.Linear(5, 6 * 2 * 2), nn.Unflatten(1, (6, 2, 2)), nn.ConvTranspose2d(6, 5, 3, 2),
        nn.Tanh(), nn.Conv2d(5, 3, (3, 2), (1, 2), (0, 1), dilation=(2, 1)),
    ),
    "enlarged images": nn.Sequential(
        nn.Linear(5, 6 * 2 * 2), nn.ELU(), nn.Unflatten(1, (6, 2, 2)), nn.Upsample(scale_factor=2),
        nn.Conv2d(6, 5, 3, padding=1), nn.BatchNorm2d(5), nn.ELU(), nn.Upsample((12, 8)),
        nn.Conv2d(5, 2, (2, 5), padding=(0, 1)),
    ),
    "an activation for each layer": nn.Sequential(
        nn.Linear(5, 6 * 2 * 2), nn.SiLU(), nn.Unflatten(1, (6, 2, 2)),
        nn.ConvTranspose2d(6, 5, 3, 2), nn.Upsample(scale_factor=2),
        nn.Conv2d(5, 4, 3, padding=1), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.LeakyReLU(0.2),
        nn.Conv2d(4, 2, 3), nn.Sigmoid(),
    ),
    "activation of an enlarged image": nn.Sequential(
        nn.Linear(5, 6 * 2 * 2), nn.Unflatten(1, (6, 2, 2)), nn.Upsample(scale_factor=2), nn.ELU(),
        nn.Conv2d(6, 5, 3, padding=1), nn.Upsample(scale_factor=2), nn.ELU(), nn.Conv2d(5, 1, 3),
    ),
    "dense at the end": nn.Sequential(
        nn.Unflatten(1, (5, 1, 1)), nn.ConvTranspose2d(5, 7, 3), nn.Softplus(), nn.Flatten(),
        nn.Linear(63, 12),
    ),
}


@pytest.mark.parametrize("kind", CONVOLUTIONAL)
def test_convolutions_are_recognised_and_stay_what_they_are(kind):
    found, shape = described(CONVOLUTIONAL[kind], crais.Gaussian(0.5))
    kinds = [layer["kind"] for layer in found["layers"]]
    assert "convolution" in kinds and found["likelihood"] == "gaussian:0.5"
    shapes = {tuple(layer["output"]) for layer in found["layers"] if "output" in layer}
    assert tuple(shape[1:]) in shapes or kinds[-1] == "dense"
    if kind == "nothing between two layers":
        assert kinds == ["dense", "convolution"]


class Sliced(nn.Module):
    """x[:, *places]."""

    def __init__(self, places):
        super().__init__()
        self.places = places

    def forward(self, x):
        return x[(slice(None), *self.places)]


class Mean(nn.Module):
    """Along a dimension, which goes."""

    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return x.mean(self.dim)


ALL, IMAGE = slice(None), nn.Unflatten(1, (6, 4, 3))


def start():
    return nn.Linear(5, 72), nn.ELU(), IMAGE


torch.manual_seed(7)
RESAMPLED = {
    "a crop after each transposed convolution": nn.Sequential(
        *start(), nn.ConvTranspose2d(6, 4, 3, 2, 1, 1), Sliced((ALL, slice(7), slice(5))),
        nn.ReLU(),
        nn.ConvTranspose2d(4, 2, 4, 2, 1), Sliced((ALL, slice(1, 14), slice(0, -1))),
    ),
    "a crop from the start": nn.Sequential(
        *start(), nn.ConvTranspose2d(6, 4, 3, 2), nn.ReLU(),
        Sliced((ALL, slice(2, None), slice(3, 6))), nn.Conv2d(4, 2, 3, 1, 1),
    ),
    "a crop of a convolution": nn.Sequential(
        *start(), nn.Conv2d(6, 5, 3, 1, 1), nn.Tanh(), Sliced((ALL, slice(1, 3), slice(1, None))),
        nn.Conv2d(5, 4, 3, 2, 3, dilation=2), nn.Sigmoid(), Sliced((slice(1, 4), slice(1, None))),
    ),
    "a crop of a dilated transposed convolution": nn.Sequential(
        *start(), nn.ConvTranspose2d(6, 4, 3, 2, 1, dilation=2),
        Sliced((ALL, slice(1, -2), slice(None, -3))), nn.ReLU(), nn.Conv2d(4, 1, 3),
    ),
    "a crop of a sum": nn.Sequential(
        *start(), same(), Residual(nn.ELU(), same()), nn.ELU(), Sliced((ALL, slice(1, 4), ALL)),
        nn.Conv2d(6, 2, 2),
    ),
    "a crop of units": nn.Sequential(
        nn.Linear(5, 90), nn.ELU(), Sliced((slice(7, 79),)), IMAGE, Sliced((ALL, ALL, slice(2))),
        nn.Conv2d(6, 2, 2),
    ),
    "some of the latents": nn.Sequential(
        Sliced((slice(1, 4),)), nn.Linear(3, 8), nn.ELU(), nn.Linear(8, 9)
    ),
    "latents as an image with pads": nn.Sequential(
        nn.Unflatten(1, (5, 1, 1)), nn.ZeroPad2d(1), nn.Conv2d(5, 4, 2), nn.ReLU(),
        nn.PixelShuffle(2),
    ),
    "every other unit": nn.Sequential(
        nn.Linear(5, 24), nn.ELU(), Sliced((slice(0, None, 2),)), nn.Linear(12, 9)
    ),
    "a row": nn.Sequential(*start(), same(), nn.ELU(), Sliced((ALL, 2)), nn.Conv1d(6, 2, 2)),
    "pads": nn.Sequential(
        *start(), nn.ZeroPad2d((1, 2, 0, 3)), nn.Conv2d(6, 4, 3), nn.Softplus(),
        nn.ZeroPad2d(1), nn.ConvTranspose2d(4, 3, 3, 2), nn.ReLU(), nn.ZeroPad2d((-1, 1, 2, -2)),
        nn.Conv2d(3, 2, 3),
    ),
    "pads of units": nn.Sequential(
        nn.Linear(5, 72), IMAGE, nn.ZeroPad2d((0, 1, 1, 0)), nn.ELU(), nn.Conv2d(6, 2, 3)
    ),
    "means": nn.Sequential(
        *start(), nn.AvgPool2d(2, stride=1), nn.Conv2d(6, 4, 2), nn.ReLU(),
        nn.ConvTranspose2d(4, 4, 4, 2), nn.ELU(), nn.AvgPool2d((2, 3), padding=1), nn.ELU(),
        nn.ConvTranspose2d(4, 2, 3, 2),
    ),
    "means of windows that differ": nn.Sequential(
        *start(), nn.AvgPool2d(2, ceil_mode=True), nn.Conv2d(6, 4, 2, padding=1), nn.ReLU(),
        nn.AvgPool2d(2, 1, 1, count_include_pad=False), nn.AdaptiveAvgPool2d((2, 3)), nn.Tanh(),
        nn.AdaptiveAvgPool2d((2, 1)), nn.Conv2d(4, 2, 1), nn.ELU(), nn.AdaptiveAvgPool2d(1),
    ),
    "pixels from channels": nn.Sequential(
        *start(), nn.Conv2d(6, 8, 3, 1, 1), nn.PixelShuffle(2), nn.ReLU(), nn.Conv2d(2, 9, 1),
        nn.ELU(), nn.PixelShuffle(3),
    ),
    "bilinear": nn.Sequential(
        *start(), nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(6, 3, 3), nn.SiLU(),
        nn.UpsamplingBilinear2d((9, 7)), nn.ELU(), nn.Conv2d(3, 1, 3),
    ),
    "batch norm of what is interpolated": nn.Sequential(
        nn.Linear(5, 72), IMAGE, nn.Upsample(scale_factor=2, mode="bilinear"), nn.BatchNorm2d(6),
        nn.ELU(), nn.Conv2d(6, 4, 3), nn.Upsample(7, mode="bicubic"), nn.BatchNorm2d(4), nn.ReLU(),
        nn.Conv2d(4, 2, 3), nn.ZeroPad2d(1), nn.BatchNorm2d(2),
    ),
    "bilinear, corners aligned": nn.Sequential(
        *start(), nn.Upsample((9, 7), mode="bilinear", align_corners=True), nn.Conv2d(6, 3, 3),
        nn.SiLU(), nn.Upsample(scale_factor=3, mode="bilinear", align_corners=True), nn.Sigmoid(),
    ),
    "large and bilinear": nn.Sequential(
        *start(), nn.Upsample(80, mode="bilinear"), nn.AvgPool2d(20), nn.Conv2d(6, 3, 3),
    ),
    "other interpolation": nn.Sequential(
        *start(), nn.Upsample(7), nn.Conv2d(6, 4, 3), nn.ReLU(), nn.Upsample(9, mode="bicubic"),
        nn.GroupNorm(2, 4), nn.Tanh(), nn.Upsample((4, 5), mode="nearest-exact"),
        nn.Conv2d(4, 1, 3),
    ),
    "other pads": nn.Sequential(
        *start(), nn.ReflectionPad2d((1, 0, 2, 1)), nn.Conv2d(6, 4, 3), nn.ELU(),
        nn.ReplicationPad2d(2), nn.Conv2d(4, 2, 3), nn.Flatten(2), nn.ReLU(), nn.ReflectionPad1d(1),
        nn.ReplicationPad1d((0, 2)), nn.Conv1d(2, 1, 4),
    ),
    "every other column": nn.Sequential(
        *start(), same(), nn.ELU(), Sliced((ALL, ALL, slice(None, None, 2))), nn.Conv2d(6, 2, 2),
    ),
    "means along axes": nn.Sequential(
        *start(), same(), nn.ELU(), Mean(2), nn.Conv1d(6, 5, 2), nn.ELU(), Mean(2), nn.Linear(5, 9),
    ),
    "bilinear of a linear layer": nn.Sequential(
        nn.Linear(5, 72), IMAGE, nn.Upsample(scale_factor=2, mode="bilinear"), nn.ELU(),
        nn.Conv2d(6, 2, 3),
    ),
    "along one axis": nn.Sequential(
        nn.Linear(5, 24), nn.Unflatten(1, (6, 4)), nn.ReLU(), nn.ConvTranspose1d(6, 5, 4, 2, 1),
        nn.BatchNorm1d(5), nn.LeakyReLU(0.2), nn.Upsample(scale_factor=2),
        nn.Conv1d(5, 4, 5, padding=2), nn.ELU(), Sliced((ALL, slice(1, 13))),
        nn.AvgPool1d(2), nn.ConstantPad1d((1, 0), 0.0),
        nn.ConvTranspose1d(4, 2, 3, 2, 1, output_padding=1), nn.ELU(),
        nn.Conv1d(2, 2, 3, dilation=2),
    ),
}


class Preceded(nn.Module):
    """x + f(x), as blocks of generators have it."""

    def __init__(self, channels, groups):
        super().__init__()
        norms = [nn.GroupNorm(groups, channels, eps=1e-3) for _ in range(2)]
        self.body = nn.Sequential(
            norms[0], nn.SiLU(), same(channels), norms[1], nn.SiLU(), same(channels)
        )

    def forward(self, x):
        return self.body(x) + x


NORMALISED = {
    "groups of a convolution": nn.Sequential(
        *start(), nn.ConvTranspose2d(6, 8, 3, 2, 1, 1), nn.GroupNorm(4, 8), nn.SiLU(),
        nn.Conv2d(8, 6, 3), nn.GroupNorm(1, 6, eps=1e-2), nn.ReLU(), nn.Conv2d(6, 5, 2),
        nn.GroupNorm(5, 5, affine=False), nn.Tanh(), nn.Conv2d(5, 2, 3),
    ),
    "groups of a dense layer": nn.Sequential(
        nn.Linear(5, 72), IMAGE, nn.GroupNorm(3, 6), nn.ELU(), nn.Conv2d(6, 2, 3),
    ),
    "units of a dense layer": nn.Sequential(
        nn.Linear(5, 12), nn.LayerNorm(12), nn.GELU(), nn.Linear(12, 8), nn.GroupNorm(4, 8),
        nn.ELU(), nn.Linear(8, 8), nn.LayerNorm(8, elementwise_affine=False), nn.Linear(8, 12),
    ),
    "whole images": nn.Sequential(
        *start(), same(), nn.LayerNorm([6, 4, 3]), nn.ELU(), same(), nn.LayerNorm([4, 3]),
        nn.ReLU(), nn.Conv2d(6, 2, 3),
    ),
    "after an activation": nn.Sequential(
        nn.Linear(5, 12), nn.ReLU(), nn.LayerNorm(12), nn.Linear(12, 72), nn.ELU(), IMAGE, same(),
        nn.ELU(), nn.GroupNorm(2, 6), nn.Conv2d(6, 2, 3),
    ),
    "of latents": nn.Sequential(nn.LayerNorm(5), nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 9)),
    "before blocks": nn.Sequential(
        nn.Linear(5, 72), IMAGE, Preceded(6, 2), Preceded(6, 3), nn.GroupNorm(1, 6), nn.SiLU(),
        nn.Conv2d(6, 2, 3),
    ),
    "of an enlarged image, cropped": nn.Sequential(
        *start(), nn.Conv2d(6, 4, 1), nn.Upsample(scale_factor=2), nn.GroupNorm(2, 4), nn.ELU(),
        Sliced((ALL, slice(1, 7), ALL)), nn.Conv2d(4, 1, 3),
    ),
    "along one axis": nn.Sequential(
        nn.Linear(5, 24), nn.Unflatten(1, (6, 4)), nn.LayerNorm(4), nn.ReLU(),
        nn.ConvTranspose1d(6, 4, 4, 2, 1), nn.GroupNorm(2, 4), nn.ReLU(), nn.Conv1d(4, 2, 3),
    ),
}


def in_float64(network):
    """Its weights are float32's; its sums are not."""

    def wide(part):
        wider = {name: one.double() for name, one in vars(part).items() if torch.is_tensor(one)}
        return replace(part, **wider)

    layers_of = [
        replace(wide(one), normalisation=one.normalisation and wide(one.normalisation))
        for one in network.layers
    ]
    return layers.Network(layers_of)


NOT_PLAIN = RESAMPLED | NORMALISED


@pytest.mark.parametrize("kind", NOT_PLAIN)
def test_what_stands_between_layers_is_what_it_was(kind):
    decoder = uneven(NOT_PLAIN[kind])
    with torch.no_grad():
        output = decoder(Z)
    found = layers.recognise(
        decoder, crais.Gaussian(0.5), crais.StandardNormal(), None, Z, torch.rand_like(output)
    )
    assert found is not None
    z = torch.randn(4, 5, dtype=torch.float64)
    wanted = copy.deepcopy(decoder).double()(z).detach().flatten(1)
    torch.testing.assert_close(in_float64(found.decoder)(z), wanted, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("kind", NOT_PLAIN)
def test_the_evaluator_takes_what_stands_between_layers(compiled, kind):
    """Chains are those of PyTorch's own evaluation."""
    decoder = uneven(NOT_PLAIN[kind])
    torch.manual_seed(3)
    with torch.no_grad():
        x = decoder(torch.randn(6, 5))
        x += 0.5 * torch.randn(x.shape)
    run = lambda decode: crais.evaluate(
        decoder=decode, images=x, likelihood=crais.Gaussian(0.5), latent=5, steps=4, chains=8,
        base="prior", force_dtype="float32", progress=False,
    )  # fmt: skip
    found, wanted = run(decoder), run(lambda z: decoder(z * torch.ones(())))
    assert found.summary["evaluator"] != "pytorch"
    assert wanted.summary["evaluator"] == "pytorch"
    np.testing.assert_allclose(found.log_likelihood, wanted.log_likelihood, atol=0.01)


@pytest.mark.parametrize("likelihood", ("logits", "means"))
def test_bases_are_those_of_the_models_own_outputs(compiled, likelihood):
    """Curvatures of probabilities are about logits too, which the evaluator computes."""
    torch.manual_seed(0)
    logits = nn.Sequential(
        nn.Linear(4, 32), nn.ELU(), nn.Unflatten(1, (8, 2, 2)), nn.ConvTranspose2d(8, 4, 4, 2, 1),
        nn.ELU(), nn.Conv2d(4, 1, 3, 1, 1),
    ).eval()  # fmt: skip
    with torch.no_grad():
        logits[-1].weight *= 4
        x = torch.bernoulli(logits(2 * torch.randn(8, 4)).sigmoid())
    means = nn.Sequential(logits, nn.Sigmoid())
    run = lambda decode, pixels: crais.evaluate(
        decoder=decode, images=x, likelihood=pixels, latent=4, base="laplace", steps=24, chains=8,
        force_dtype="float32", progress=False,
    )  # fmt: skip
    if likelihood == "logits":
        found, wanted = run(means, crais.Bernoulli(probs=True)), run(logits, crais.Bernoulli())
    else:
        found = run(means, crais.Gaussian(0.5))
        wanted = run(lambda z: means(z * torch.ones(())), crais.Gaussian(0.5))
    assert found.summary["evaluator"] != "pytorch"
    assert found.ess == pytest.approx(wanted.ess, abs=0.01)
    np.testing.assert_allclose(found.log_likelihood, wanted.log_likelihood, atol=0.01)


def test_a_normalisation_costs_no_layer():
    decoder = nn.Sequential(
        nn.Linear(5, 72), IMAGE, nn.GroupNorm(3, 6), nn.ELU(), nn.Conv2d(6, 2, 3)
    )
    described_as, _ = described(decoder, crais.Bernoulli())
    first, last = described_as["layers"]
    assert first["normalisation"] == {"groups": 3, "eps": 1e-5}
    assert first["kind"] == "dense" and "normalisation" not in last


def test_weights_may_be_computed():
    """By weight and spectral normalisation, or by hand."""
    by_weight = nn.utils.parametrizations.weight_norm
    by_spectrum = nn.utils.parametrizations.spectral_norm
    last = nn.Conv2d(4, 2, 2)
    blocks = nn.Sequential(
        nn.Linear(5, 72), IMAGE, nn.ELU(), by_weight(same()), nn.ELU(),
        by_spectrum(nn.Conv2d(6, 4, 2)), nn.ELU(),
    ).eval()  # fmt: skip

    def decoder(z):
        return F.conv2d(blocks(z), last.weight, 3 * last.bias)

    before = copy.deepcopy(blocks.state_dict())
    x = torch.rand_like(decoder(Z))
    found = layers.recognise(decoder, crais.Bernoulli(), crais.StandardNormal(), None, Z, x)
    torch.testing.assert_close(found.decoder(Z), decoder(Z).flatten(1))
    assert all(torch.equal(one, before[name]) for name, one in blocks.state_dict().items())
    drawn = lambda z: F.conv2d(blocks(z), torch.bernoulli(torch.full_like(last.weight, 0.5)))
    assert layers.recognise(drawn, crais.Bernoulli(), crais.StandardNormal(), None, Z, x) is None


def test_what_is_recognised_computes_what_the_decoder_does(monkeypatch):
    """Whatever the trace has missed."""
    decoder = nn.Sequential(nn.Linear(5, 7), nn.ELU(), nn.Linear(7, 12), nn.Unflatten(1, (3, 4)))
    assert recognised(decoder) is not None
    monkeypatch.setitem(layers._ACTIVATIONS, "elu", lambda *scales: "relu")
    assert recognised(decoder) is None


def test_what_convolutions_are_not_known():
    def network(*after):
        return nn.Sequential(
            nn.Linear(5, 64), nn.ELU(), nn.Unflatten(1, (4, 4, 4)), *after, nn.Flatten()
        ).eval()

    x = torch.rand(3, 4, 4, 4)
    same = nn.Conv2d(4, 4, 3, 1, 1)
    for decoder in (
        network(nn.Conv2d(4, 4, 3, 1, 1, groups=2)),
        network(nn.BatchNorm2d(4), same),
        network(same, nn.ELU(), nn.Upsample(8), nn.Conv2d(4, 4, 2, 2)),
        network(same, nn.LayerNorm([4, 4, 4])),
        network(nn.Conv2d(4, 4, 3, 1, 1), nn.LayerNorm(4), same),
        network(nn.GroupNorm(2, 4), nn.ELU(), Residual(same), nn.ELU(), same),
        network(same, nn.GroupNorm(2, 4), Residual(nn.ELU(), same), nn.ELU(), same),
        network(same, nn.InstanceNorm2d(4), nn.ELU(), same),
        network(same, nn.ELU(), nn.Upsample(1500, mode="bilinear"), nn.AvgPool2d(375)),
        network(same, nn.ELU(), nn.AvgPool3d((2, 1, 1), (2, 1, 1)), nn.ConvTranspose2d(2, 4, 1)),
        network(same, nn.ELU(), nn.CircularPad2d(1), nn.Conv2d(4, 4, 3)),
        network(same, nn.ELU(), nn.Upsample(4, mode="bilinear"), nn.BatchNorm2d(4), same),
        lambda z: network(same)(z).view(-1, 4, 4, 4).mean(1, keepdim=True).expand(-1, 4, -1, -1),
        network(same, nn.ELU(), nn.ConstantPad2d(1, 0.5), nn.Conv2d(4, 4, 3)),
        network(
            same, nn.ELU(), nn.ConstantPad3d((0, 0, 0, 0, 1, 0), 0.0), nn.Conv2d(5, 4, 3, 1, 1)
        ),
        network(same, nn.ELU(), nn.MaxPool2d(2), nn.ConvTranspose2d(4, 4, 2, 2)),
        network(same, nn.ELU(), nn.Upsample(8), nn.ConvTranspose2d(4, 4, 3, 1, 3)),
        lambda z: network()(z) + same(network()(z).view(-1, 4, 4, 4)).flatten(1),
    ):
        found = layers.recognise(decoder, crais.Bernoulli(), crais.StandardNormal(), None, Z, x)
        assert found is None, decoder
    known = network(same)
    found = layers.recognise(known, crais.Bernoulli(), crais.StandardNormal(), None, Z, x)
    assert not found.is_mlp
