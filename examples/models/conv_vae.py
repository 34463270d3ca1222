"""A convolutional VAE with batch normalisation on black and white MNIST, 32 latents.

PYTHONPATH=python python3 examples/models/conv_vae.py conv_vae.pt2
build/release/bin/eval-loglik conv_vae.pt2 --limit 100
"""

import common

import crais

flags = common.arguments(__doc__)
vae = common.Vae(common.conv_encoder(32), common.conv_decoder(32), crais.Bernoulli())
common.fit_and_export(vae, flags, latent=32, prepare=common.binarised, epochs=8, binarisation="dynamic")
