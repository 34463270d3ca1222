#!/usr/bin/env python3
"""Training of the default VAE as a plain PyTorch loop, to be timed beside train-vae.

    train_pytorch.py FOLDER EPOCHS

The first 50,000 of FOLDER's train-images-idx3-ubyte(.gz), 784-200-200-50, tanh, batches of 128, binarised
anew each epoch, Adam at 1e-3, the ELBO with one sample. Prints seconds an epoch and the last epoch's mean.
"""

import gzip
import json
import os
import sys
import time

import torch

BATCH, IMAGES, LATENT, HIDDEN = 128, 50_000, 50, 200


def read_images(folder):
    path = os.path.join(folder, "train-images-idx3-ubyte")
    opener, path = (open, path) if os.path.exists(path) else (gzip.open, path + ".gz")
    with opener(path, "rb") as file:
        raw = bytearray(file.read())
    return torch.frombuffer(raw, dtype=torch.uint8, offset=16).view(-1, 784)[:IMAGES].float() / 255


def mlp(inputs, outputs):
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, HIDDEN), torch.nn.Tanh(),
        torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.Tanh(),
        torch.nn.Linear(HIDDEN, outputs))


def negative_elbo(encoder, decoder, x):
    mean, log_variance = encoder(x).chunk(2, dim=1)
    z = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(decoder(z), x, reduction="sum")
    kl = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum()
    return (loss + kl) / len(x)


def main():
    folder, epochs = sys.argv[1], int(sys.argv[2])
    torch.manual_seed(1)
    torch.set_num_threads(1)
    images = read_images(folder)
    encoder, decoder = mlp(784, 2 * LATENT), mlp(LATENT, 784)
    adam = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    seconds = []
    for _ in range(epochs):
        start, total = time.process_time(), 0.0
        for rows in torch.randperm(IMAGES).split(BATCH):
            adam.zero_grad()
            loss = negative_elbo(encoder, decoder, torch.bernoulli(images[rows]))
            loss.backward()
            adam.step()
            total += loss.item() * len(rows)
        seconds.append(time.process_time() - start)
    print(json.dumps({"seconds_an_epoch": min(seconds), "elbo": -total / IMAGES}))


main()
