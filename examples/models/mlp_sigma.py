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
vae = common.fit(
    common.Vae(common.Code(encoder), decoder, crais.Gaussian(0.2, learn=True)),
    flags,
    train=common.mnist(flags.data, "train"),
    test=common.mnist(flags.data, "t10k"),
    prepare=common.dequantised,
    epochs=20,
    rate=1e-3,
)
print(f"learned standard deviation {vae.likelihood.spec()['scale']:.4f}")
crais.export(
    flags.out,
    decoder=vae.decoder,
    likelihood=vae.likelihood,
    encoder=vae.encoder,
    latent=20,
    image_shape=(1, 28, 28),
    binarisation="none",
)
