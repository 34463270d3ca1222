"""Whether a longer training made a better model: the same images under two checkpoints, in pairs.

python3 examples/compare_checkpoints.py [BEFORE AFTER [--data FILE[:KEY]]]

Without arguments it trains a small VAE on drawn digits for 2 epochs and for 6.
"""

import argparse
import tempfile

import crais

flags = argparse.ArgumentParser()
flags.add_argument("checkpoints", nargs="*")
flags.add_argument("--data", help="as eval-loglik takes it; MNIST if it is left out")
flags.add_argument("--images", type=int, default=200)
arguments = flags.parse_args()

with tempfile.TemporaryDirectory() as folder:
    if arguments.checkpoints:
        chosen = {"data": arguments.data, "limit": arguments.images}
        before, after = (crais.evaluate(file, **chosen) for file in arguments.checkpoints)
    else:
        files = [
            crais.train_vae(
                data="synthetic:3000", hidden=[64], latent=8, epochs=epochs, progress=False,
                out=f"{folder}/{epochs}",
            ).checkpoint
            for epochs in (2, 6)
        ]  # fmt: skip
        drawn = crais.certify(files[1], num_images=arguments.images, progress=False)
        images = drawn.images  # both models see the images that the second draws
        before, after = (crais.evaluate(file, images, progress=False) for file in files)

print(before, after, sep="\n")
print(crais.compare(before, after))
