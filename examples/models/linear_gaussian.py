"""A linear decoder with normal noise, whose log p(x) is exact: a check of any estimate.

PYTHONPATH=python python3 examples/models/linear_gaussian.py linear_gaussian.pt2
build/release/bin/eval-loglik linear_gaussian.pt2 --data linear_gaussian.npy
"""

from pathlib import Path

import common
import numpy as np
import torch
from torch import nn

import crais

LATENT, SIZE, SD, ROWS = 16, 64, 0.3, 50

flags = common.arguments(__doc__)
decoder = nn.Linear(LATENT, SIZE)
nn.init.normal_(decoder.weight, std=0.5)
likelihood = crais.Gaussian(SD)
with torch.no_grad():
    x = likelihood.draw(decoder(torch.randn(ROWS, LATENT)), (ROWS, SIZE))
    weight = decoder.weight.double()
    covariance = weight @ weight.T + SD**2 * torch.eye(SIZE)
    exact = torch.distributions.MultivariateNormal(decoder.bias.double(), covariance)
    values = exact.log_prob(x.double())
np.save(Path(flags.out).with_suffix(".npy"), x.numpy())
print("\n".join(f"row {row}: log p(x) = {value:.6f}" for row, value in enumerate(values.tolist())))
print(f"mean log p(x) = {values.mean():.6f}")
crais.export(flags.out, decoder=decoder, likelihood=likelihood, latent=LATENT, image_shape=(SIZE,))
