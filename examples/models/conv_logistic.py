"""A convolutional VAE on grey MNIST: 8-bit pixels under discretised logistic noise, 32 latents.

PYTHONPATH=python python3 examples/models/conv_logistic.py conv_logistic.pt2
build/release/bin/eval-loglik conv_logistic.pt2 --limit 100
"""

import common

import crais

flags = common.arguments(__doc__)
vae = common.fit(
    common.Vae(
        common.conv_encoder(32), common.conv_decoder(32, channels=2), crais.DiscretizedLogistic()
    ),
    flags,
    train=common.mnist(flags.data, "train"),
    test=common.mnist(flags.data, "t10k"),
    prepare=common.grey,
    epochs=8,
)
crais.export(
    flags.out,
    decoder=vae.decoder,
    likelihood=vae.likelihood,
    encoder=vae.encoder,
    latent=32,
    image_shape=(1, 28, 28),
    binarisation="none",
)
