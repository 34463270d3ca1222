"""A convolutional VAE on grey MNIST: 8-bit pixels under discretised logistic noise, 32 latents.

PYTHONPATH=python python3 examples/models/conv_logistic.py conv_logistic.pt2
build/release/bin/eval-loglik conv_logistic.pt2 --limit 100
"""

import common

import crais

flags = common.arguments(__doc__)
decoder = common.conv_decoder(32, channels=2)
# Black is likelier the further its mean lies below 0, so that many means lie outside of [0, 1].
likelihood = crais.DiscretizedLogistic("log_scale", domain=(0, 1))
vae = common.Vae(common.conv_encoder(32), decoder, likelihood)
common.fit_and_export(vae, flags, latent=32, prepare=common.grey, epochs=8)
