#!/usr/bin/env python3
"""Annealed importance sampling of a VAE's log p(x) as a plain PyTorch script, to be timed beside ours.

    ais_pytorch.py MODEL simulate FOLDER        128 images of the model, as FOLDER/t10k-images-idx3-ubyte
    ais_pytorch.py MODEL naive|careful FOLDER   their log p(x), and seconds, as JSON

MODEL is a checkpoint of train-vae, or the weights that examples/models/conv_vae.py keeps.

From the encoder's q(z|x), 64 equal temperatures, 16 chains, Hamiltonian Monte Carlo with one leapfrog
step of 0.15 in units of q's standard deviations. `naive` remembers nothing between temperatures, as
such scripts are mostly written; `careful` keeps each particle's densities and gradient, asks for no
gradients of weights, never repeats an image, and calls the decoder with as many rows as suit it.
"""

import json
import math
import struct
import sys
import time
from pathlib import Path

import torch

IMAGES, CHAINS, STEPS, STEP_SIZE = 128, 16, 64, 0.15


def read_checkpoint(path):
    """The encoder and decoder, tensors by name."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            flat = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32)
            tensors[name] = flat.reshape(entry["shape"])
    activation = json.loads(header["__metadata__"]["crais"])["architecture"]["activation"]
    layer = {"tanh": torch.nn.Tanh, "elu": torch.nn.ELU, "relu": torch.nn.ReLU,
             "leaky-relu": torch.nn.LeakyReLU, "softplus": torch.nn.Softplus}[activation]

    def mlp(part):
        layers = []
        for name in sorted(n for n in tensors if n.startswith(part) and n.endswith("weight")):
            weight, bias = tensors[name], tensors[name.replace("weight", "bias")]
            linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
            linear.load_state_dict({"weight": weight, "bias": bias})
            layers += [layer(), linear]
        return torch.nn.Sequential(*layers[1:])

    return mlp("encoder"), mlp("decoder")


class Rows(torch.nn.Module):
    """A convolutional network as a function of rows: [..., in] -> [..., out]. BATCH rows a call."""

    BATCH = 128

    def __init__(self, network, shape):
        super().__init__()
        self.network, self.shape = network, shape

    def forward(self, rows):
        flat = rows.reshape(-1, *self.shape)
        parts = [self.network(part).flatten(1) for part in flat.split(self.BATCH)]
        return torch.cat(parts).reshape(*rows.shape[:-1], -1)


def read_conv_vae(path):
    """Encoder and decoder of examples/models/conv_vae.py."""
    root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(root / "examples/models"), str(root / "python")]
    import common
    import crais

    vae = common.Vae(common.conv_encoder(32), common.conv_decoder(32), crais.Bernoulli())
    vae.load_state_dict(torch.load(path))
    vae.eval()
    return Rows(vae.encoder.network, (1, 28, 28)), Rows(vae.decoder, (32,))


def standard_normal(x):
    return (-0.5 * x * x - 0.5 * math.log(2 * math.pi)).sum(-1)


def naive(encoder, decoder, x):
    with torch.no_grad():
        mean, log_var = encoder(x).chunk(2, dim=-1)
    mean = mean.repeat_interleave(CHAINS, 0)
    sd = (0.5 * log_var).exp().repeat_interleave(CHAINS, 0)
    x = x.repeat_interleave(CHAINS, 0)
    base = torch.distributions.Normal(mean, sd)
    prior = torch.distributions.Normal(0.0, 1.0)

    def log_f(z, beta):
        log_px = -torch.nn.functional.binary_cross_entropy_with_logits(
            decoder(z), x, reduction="none").sum(-1)
        return (1 - beta) * base.log_prob(z).sum(-1) + beta * (prior.log_prob(z).sum(-1) + log_px)

    def gradient(z, beta):
        z = z.detach().requires_grad_(True)
        return torch.autograd.grad(log_f(z, beta).sum(), z)[0]

    z, log_w = base.sample(), torch.zeros(len(x))
    for t in range(1, STEPS + 1):
        beta, before = t / STEPS, (t - 1) / STEPS
        log_w = log_w + (log_f(z, beta) - log_f(z, before)).detach()
        start = torch.randn_like(z) / sd
        p = start + 0.5 * STEP_SIZE * gradient(z, beta)
        moved = z + STEP_SIZE * sd * sd * p
        p = p + 0.5 * STEP_SIZE * gradient(moved, beta)

        def energy(z, p):
            return log_f(z, beta).detach() - 0.5 * (p * sd).square().sum(-1)

        accepted = torch.rand(len(x)).log() < energy(moved, p) - energy(z, start)
        z = torch.where(accepted.unsqueeze(-1), moved, z)
    return log_w.reshape(IMAGES, CHAINS)


def careful(encoder, decoder, x):
    for parameter in decoder.parameters():
        parameter.requires_grad_(False)
    with torch.no_grad():
        mean, log_var = (part.unsqueeze(1) for part in encoder(x).chunk(2, dim=-1))
    sd = (0.5 * log_var).exp()
    log_det, x = sd.log().sum(-1), x.unsqueeze(1)

    def evaluate(e):
        """log p(x, z(e)) |dz/de| and its gradient; z = mean + sd e."""
        z = (mean + sd * e).requires_grad_(True)
        with torch.enable_grad():
            logits = decoder(z)
            log_gamma = standard_normal(z) + (x * logits - torch.nn.functional.softplus(logits)).sum(-1)
            gradient = torch.autograd.grad(log_gamma.sum(), z)[0]
        return log_gamma.detach() + log_det, sd * gradient

    with torch.no_grad():
        e = torch.randn(IMAGES, CHAINS, mean.shape[-1])
        log_gamma, gradient = evaluate(e)
        log_q = standard_normal(e)
        log_w = torch.zeros(IMAGES, CHAINS)
        for t in range(1, STEPS + 1):
            beta = t / STEPS
            log_w += (log_gamma - log_q) / STEPS
            start = torch.randn_like(e)
            p = start + 0.5 * STEP_SIZE * (beta * gradient - (1 - beta) * e)
            moved = e + STEP_SIZE * p
            moved_gamma, moved_gradient = evaluate(moved)
            p = p + 0.5 * STEP_SIZE * (beta * moved_gradient - (1 - beta) * moved)
            moved_q = standard_normal(moved)
            change = (beta * (moved_gamma - log_gamma) + (1 - beta) * (moved_q - log_q)
                      + 0.5 * (start.square().sum(-1) - p.square().sum(-1)))
            accepted = torch.rand_like(change).log() < change
            rows = accepted.unsqueeze(-1)
            e, gradient = torch.where(rows, moved, e), torch.where(rows, moved_gradient, gradient)
            log_gamma = torch.where(accepted, moved_gamma, log_gamma)
            log_q = torch.where(accepted, moved_q, log_q)
    return log_w


def main():
    model, action, folder = sys.argv[1:]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    encoder, decoder = (read_checkpoint if model.endswith(".safetensors") else read_conv_vae)(model)
    latent = encoder(torch.zeros(1, 784)).shape[1] // 2
    images = f"{folder}/t10k-images-idx3-ubyte"
    if action == "simulate":
        with torch.no_grad():
            x = torch.bernoulli(torch.sigmoid(decoder(torch.randn(IMAGES, latent))))
        side = math.isqrt(x.shape[1])
        with open(images, "wb") as file:
            file.write(struct.pack(">4i", 0x803, IMAGES, side, side) + bytes((255 * x).byte().flatten().tolist()))
        return
    with open(images, "rb") as file:
        pixels = torch.frombuffer(bytearray(file.read()[16:]), dtype=torch.uint8)
    x = (pixels.reshape(IMAGES, -1) > 127).float()
    run = {"naive": naive, "careful": careful}[action]
    start = time.perf_counter()
    log_w = run(encoder, decoder, x).double()
    seconds = time.perf_counter() - start
    found = torch.logsumexp(log_w, 1) - math.log(CHAINS)
    print(json.dumps({"log_likelihoods": found.tolist(), "seconds": seconds, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
