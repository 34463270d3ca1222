"""A VAE of linear layers on grey MNIST, with normal noise of a learned scale, 20 latents.

PYTHONPATH=python python3 examples/models/mlp_sigma.py mlp_sigma.pt2
build/release/bin/eval-loglik mlp_sigma.pt2 --limit 100
"""

import common
from torch import nn

import crais

flags = common.arguments(__doc__)
encoder = nn.Sequential(nn.Flatten(), common.mlp(784, 200, 200, 40))
decoder = nn.Sequential(common.mlp(20, 200, 200, 784), nn.Sigmoid(), nn.Unflatten(1, (1, 28, 28)))
vae = common.Vae(common.Code(encoder), decoder, crais.Gaussian(0.2, learn=True))
common.fit_and_export(vae, flags, latent=20, prepare=common.dequantised, epochs=20, rate=1e-3)
print(f"learned standard deviation {float(vae.likelihood.log_scale.exp()):.4f}")
