"""Checks eval-loglik against an estimate that shares none of its code.

Reads a checkpoint and MNIST by itself, repeats the static binarisation, and estimates log p(x) of the first images
by annealed importance sampling from the encoder's q(z|x), in float64 with autograd. Then compares with
eval-loglik's per_image.csv, image by image.

    python3 independent_check.py CHECKPOINT t10k-images-idx3-ubyte[.gz] PER_IMAGE_CSV

Exit code 0: every image agrees within its error bars; 1: one does not; 77: there is no torch.
"""

import csv
import gzip
import json
import math
import struct
import sys

try:
    import torch
except ImportError:
    print("skipped: needs Python's torch")
    sys.exit(77)

CHAINS, STEPS, STEP_SIZE = 32, 300, 0.5
MASK = (1 << 64) - 1


def read_checkpoint(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    info = json.loads(header.pop("__metadata__")["crais"])
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = torch.frombuffer(bytearray(data[8 + length + begin : 8 + length + end]), dtype=torch.float32)
        tensors[name] = values.reshape(entry["shape"]).double()
    return info, tensors


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def static_binarisation(seed, grey):
    purpose_of_binarisation = 4
    stream = mix(mix(mix(mix(seed) ^ purpose_of_binarisation)))
    return [float((mix(stream ^ i) >> 11) * 2.0**-53 < g / 255) for i, g in enumerate(grey)]


def read_images(path, count):
    data = (gzip.open if path.endswith(".gz") else open)(path, "rb").read()
    magic, _, rows, cols = struct.unpack(">4I", data[:16])
    assert magic == 0x803
    grey = data[16 : 16 + count * rows * cols]
    return torch.tensor(static_binarisation(0, grey), dtype=torch.float64).reshape(count, rows * cols)


def network(tensors, prefix, x):
    places = sorted({int(name.split(".")[1]) for name in tensors if name.startswith(prefix)})
    for place in places:
        x = x @ tensors[f"{prefix}.{place}.weight"].T + tensors[f"{prefix}.{place}.bias"]
        if place != places[-1]:
            x = torch.tanh(x)
    return x


def estimate(tensors, x):
    """log-mean weight, its standard error: [N] each."""
    mean, log_var = network(tensors, "encoder", x).chunk(2, -1)
    q = torch.distributions.Normal(mean[:, None], (0.5 * log_var).exp()[:, None])
    prior = torch.distributions.Normal(torch.zeros(()).double(), torch.ones(()).double())

    def log_q(z):
        return q.log_prob(z).sum(-1)

    def log_joint(z):
        pixels = torch.distributions.Bernoulli(logits=network(tensors, "decoder", z))
        return prior.log_prob(z).sum(-1) + pixels.log_prob(x[:, None].expand(-1, CHAINS, -1)).sum(-1)

    def annealed(z, beta):
        z = z.detach().requires_grad_(True)
        value = (1 - beta) * log_q(z) + beta * log_joint(z)
        (grad,) = torch.autograd.grad(value.sum(), z)
        return value.detach(), grad

    scale = q.scale  # a mass matrix of the encoder's precisions
    z = mean[:, None] + scale * torch.randn(len(x), CHAINS, mean.shape[1], dtype=torch.float64)
    log_w = torch.zeros(len(x), CHAINS, dtype=torch.float64)
    for i in range(STEPS):
        here, there = i / STEPS, (i + 1) / STEPS
        with torch.no_grad():
            log_w += (there - here) * (log_joint(z) - log_q(z))
        momentum = torch.randn_like(z)
        value, grad = annealed(z, there)
        half = momentum + 0.5 * STEP_SIZE * scale * grad
        proposal = z + STEP_SIZE * scale * half
        new_value, new_grad = annealed(proposal, there)
        end = half + 0.5 * STEP_SIZE * scale * new_grad
        ratio = new_value - value + 0.5 * (momentum.square() - end.square()).sum(-1)
        accept = torch.rand_like(ratio).log() < ratio
        z = torch.where(accept[..., None], proposal, z).detach()
    weights = (log_w - log_w.max(1, keepdim=True).values).exp()
    value = log_w.logsumexp(1) - math.log(CHAINS)
    return value, weights.std(1) / weights.mean(1) / math.sqrt(CHAINS)


def main():
    checkpoint, images, results = sys.argv[1:]
    torch.manual_seed(1)
    with open(results) as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "ais"]
    info, tensors = read_checkpoint(checkpoint)
    assert info["architecture"]["activation"] == "tanh" and info["likelihood"] == "bernoulli"
    x = read_images(images, len(rows))
    value, error = estimate(tensors, x)
    worst = 0.0
    for i, row in enumerate(rows):
        assert int(row["image"]) == i
        theirs, their_error = float(row["log_likelihood"]), float(row["std_error"])
        z = (value[i].item() - theirs) / math.hypot(error[i].item(), their_error)
        worst = max(worst, abs(z))
        print(
            f"image {i:3d}: independent {value[i]:9.3f} +- {error[i]:.3f}, "
            f"eval-loglik {theirs:9.3f} +- {their_error:.3f}, z = {z:+.2f}"
        )
    difference = value.mean().item() - sum(float(row["log_likelihood"]) for row in rows) / len(rows)
    print(f"mean difference {difference:+.4f} nats, largest |z| {worst:.2f}")
    sys.exit(0 if worst < 5 and abs(difference) < 0.1 else 1)


main()
