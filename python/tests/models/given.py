"""Small models as their authors write them, with random weights, and data drawn from them.

Those of packages are the packages' own; the others are ours, with the interface of theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

Given = dict[str, Any]


def livelier(model: nn.Module, factor: float = 2.0) -> nn.Module:
    """Weights as after training: at first a decoder hardly looks at z."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter *= factor
    return model.eval()


class ExampleVae(nn.Module):
    """The interface of the VAE among PyTorch's examples: probabilities of pixels, here of 64."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc21, self.fc22 = nn.Linear(64, 32), nn.Linear(32, 6), nn.Linear(32, 6)
        self.fc3, self.fc4 = nn.Linear(6, 32), nn.Linear(32, 64)

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = F.relu(self.fc1(x))
        return self.fc21(h), self.fc22(h)

    def reparameterize(self, mu: Tensor, logvar: Tensor) -> Tensor:
        return mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)

    def decode(self, z: Tensor) -> Tensor:
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mu, logvar = self.encode(x.view(-1, 64))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def pytorch_example() -> Given:
    vae = livelier(ExampleVae())
    return {"vae": vae, "images": torch.bernoulli(vae.decode(torch.randn(20, 6)))}


def pythae() -> Given:
    models = pytest.importorskip("pythae.models")
    vae = livelier(models.VAE(models.VAEConfig(input_dim=(1, 8, 8), latent_dim=4)))
    images = torch.bernoulli(vae.decoder(torch.randn(20, 4)).reconstruction)
    return {"vae": vae, "images": images}


class VanillaVae(nn.Module):
    """The interface of PyTorch-VAE's models: a list from the encoder, images in [-1, 1]."""

    def __init__(self, in_channels: int = 3, latent_dim: int = 6) -> None:
        super().__init__()
        self.latent_dim = latent_dim
        self.encoder = nn.Sequential(
            nn.Conv2d(in_channels, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.LeakyReLU(),
            nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.LeakyReLU(),
        )  # fmt: skip
        self.fc_mu, self.fc_var = nn.Linear(64, latent_dim), nn.Linear(64, latent_dim)
        self.decoder_input = nn.Linear(latent_dim, 64)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(16, 8, 3, 2, 1, output_padding=1), nn.BatchNorm2d(8), nn.LeakyReLU()
        )
        self.final_layer = nn.Sequential(
            nn.ConvTranspose2d(8, 8, 3, 2, 1, output_padding=1), nn.BatchNorm2d(8), nn.LeakyReLU(),
            nn.Conv2d(8, in_channels, 3, padding=1), nn.Tanh(),
        )  # fmt: skip

    def encode(self, input: Tensor) -> list[Tensor]:
        result = torch.flatten(self.encoder(input), start_dim=1)
        return [self.fc_mu(result), self.fc_var(result)]

    def decode(self, z: Tensor) -> Tensor:
        return self.final_layer(self.decoder(self.decoder_input(z).view(-1, 16, 2, 2)))


def pytorch_vae() -> Given:
    model = livelier(VanillaVae())
    means = model.decode(torch.randn(10, 6))
    return {"model": model, "images": means + 0.1 * torch.randn_like(means)}


def scvi() -> Given:
    module = pytest.importorskip("scvi.module").VAE(
        n_input=30, n_latent=3, n_hidden=16, gene_likelihood="zinb", use_observed_lib_size=True
    )
    livelier(module)
    library = torch.full((5, 1), 200.0).log()
    made = module.generative(z=torch.randn(5, 3), library=library, batch_index=torch.zeros(5, 1))
    counts = made["px"].sample()
    return {"module": module, "counts": counts}


def diffusers() -> Given:
    package = pytest.importorskip("diffusers")
    vae = package.AutoencoderKL(
        in_channels=3, out_channels=3, block_out_channels=(4, 4, 8), norm_num_groups=2,
        latent_channels=2, layers_per_block=1, sample_size=8,
        down_block_types=("DownEncoderBlock2D",) * 3, up_block_types=("UpDecoderBlock2D",) * 3,
    ).eval()  # fmt: skip
    means = vae.decode(torch.randn(2, 2, 2, 2)).sample
    return {"vae": vae, "images": means + 0.5 * torch.randn_like(means)}


def lightning() -> Given:
    package = pytest.importorskip("lightning")

    class LitVae(package.LightningModule):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.vae = ExampleVae()

        def training_step(self, batch: Any, _: int) -> Tensor:
            recon, mu, logvar = self.vae(batch[0])
            kl = -0.5 * (1 + logvar - mu.square() - logvar.exp()).sum()
            return F.binary_cross_entropy(recon, batch[0], reduction="sum") + kl

    model = livelier(LitVae())
    images = torch.bernoulli(model.vae.decode(torch.randn(20, 6)))
    data = TensorDataset(images, torch.arange(20) % 10)
    return {"model": model, "test_loader": DataLoader(data, batch_size=8)}


def pyro() -> Given:
    package = pytest.importorskip("pyro")
    dist = package.distributions
    net = livelier(nn.Sequential(nn.Linear(4, 32), nn.Softplus(), nn.Linear(32, 40)))

    def model(x: Tensor) -> None:
        with package.plate("data", len(x)):
            z = package.sample("z", dist.Normal(torch.zeros(len(x), 4), 1.0).to_event(1))
            package.sample("x", dist.Bernoulli(logits=net(z)).to_event(1), obs=x)

    return {"model": model, "images": torch.bernoulli(net(torch.randn(6, 4)).sigmoid())}


def flow_prior() -> Given:
    zuko = pytest.importorskip("zuko")
    flow = zuko.flows.MAF(4, transforms=2, hidden_features=(16,)).eval()
    decoder = livelier(nn.Sequential(nn.Linear(4, 32), nn.Softplus(), nn.Linear(32, 40)))
    images = torch.bernoulli(decoder(flow().sample((4,))).sigmoid())
    return {"decoder": decoder, "flow": flow, "images": images}


KINDS: dict[str, Callable[[], Given]] = {
    "PyTorch's example": pytorch_example,
    "pythae": pythae,
    "PyTorch-VAE": pytorch_vae,
    "scvi-tools": scvi,
    "diffusers' AutoencoderKL": diffusers,
    "Lightning": lightning,
    "Pyro": pyro,
    "A flow as the prior": flow_prior,
}
