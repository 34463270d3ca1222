"""What calling back into Python costs: a convolutional VAE in crais.evaluate, against its own time.

PYTHONPATH=build/release/python:examples/models python3 bench/python_overhead.py

Its own time is that of log p(x, z) with its gradient in a loop of eager PyTorch, at the rows of a
call that crais chooses. Processor seconds of one thread, rounds alternating.
"""

import statistics
import time

import common
import torch

import crais
from crais.exporting import _with_gradient

ROWS, ROUNDS = 64, 7

torch.set_num_threads(1)
torch.manual_seed(0)
vae = common.Vae(common.conv_encoder(32), common.conv_decoder(32), crais.Bernoulli()).eval()
x = (torch.rand(64, 1, 28, 28) > 0.5).float()
z = torch.randn(ROWS, 32)


def log_joint(z):
    return crais.StandardNormal().log_prob(z) + vae.likelihood.log_prob(x[:ROWS], vae.decoder(z))


def own() -> float:
    started = time.process_time()
    for _ in range(200):
        _with_gradient(log_joint, z)
    return (time.process_time() - started) / (200 * ROWS)


def called() -> float:
    started = time.process_time()
    found = crais.evaluate(
        vae, x, base="prior", kernel="hmc", steps=24, step_size=0.1, threads=1, progress=False
    )
    seconds = time.process_time() - started
    return seconds / (len(x) * found.methods[0]["evaluations_per_image"]["estimating"])


own(), called()
rounds = [(own(), called()) for _ in range(ROUNDS)]
medians = [1e6 * statistics.median(column) for column in zip(*rounds, strict=True)]
print(f"own {medians[0]:.1f} us, in crais.evaluate {medians[1]:.1f} us an evaluation")
print(f"overhead {medians[1] / medians[0] - 1:+.1%}")
