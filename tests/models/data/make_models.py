"""Writes the exported models that the tests read: run it again where the manifest changes."""

from pathlib import Path

import torch

import crais

HERE = Path(__file__).parent


def linear_gaussian() -> None:
    """x = W z + b + 0.5 noise, whose log p(x) is known; the encoder is the exact posterior."""
    torch.manual_seed(1)
    decoder = torch.nn.Linear(3, 6)
    weight, bias = decoder.weight.detach(), decoder.bias.detach()
    precision = torch.eye(3) + weight.T @ weight / 0.25
    covariance = torch.linalg.inv(precision)
    root = torch.linalg.cholesky(covariance)

    def encode(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = x.reshape(x.shape[0], 6)
        mean = (rows - bias) @ weight @ covariance / 0.25
        return mean, root.expand(x.shape[0], 3, 3)

    crais.export(
        HERE / "linear_gaussian.pt",
        decoder=lambda z: decoder(z).reshape(z.shape[0], 2, 3),
        likelihood=crais.Gaussian(0.5),
        encoder=encode,
        latent=3,
        image_shape=(2, 3),
        fused=False,
    )


def mixture_prior() -> None:
    """Binary pixels under a prior of two normals."""
    torch.manual_seed(2)
    decoder = torch.nn.Linear(2, 5)
    prior = crais.Mixture(
        torch.tensor([0.3, 0.7]).log(),
        torch.tensor([[-1.0, 0.5], [1.5, 0.0]]),
        torch.tensor([[0.5, 1.0], [1.0, 0.7]]),
    )
    crais.export(
        HERE / "mixture_prior.pt",
        decoder=decoder,
        likelihood=crais.Bernoulli(),
        prior=prior,
        latent=2,
        image_shape=(5,),
        binarisation="dynamic",
    )


def linear_mlp() -> None:
    """The weights of a linear decoder: no code."""
    torch.manual_seed(3)
    crais.export(
        HERE / "linear_mlp.pt2",
        decoder=torch.nn.Linear(3, 6),
        likelihood=crais.Gaussian(0.5),
        encoder=torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh(), _Halves(4, 3)),
        latent=3,
        image_shape=(6,),
    )


class _Halves(torch.nn.Linear):
    """Mean and log-variance."""

    def __init__(self, inputs: int, latent: int) -> None:
        super().__init__(inputs, 2 * latent)

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return super().forward(rows).chunk(2, 1)


def conditional() -> None:
    """x = W z + b_y + 0.5 noise for labels y of 0 to 3."""
    torch.manual_seed(4)
    decoder, offsets = torch.nn.Linear(2, 5), torch.nn.Embedding(4, 5)
    crais.export(
        HERE / "conditional.pt",
        decoder=lambda z, y: decoder(z) + offsets(y),
        likelihood=crais.Gaussian(0.5),
        encoder=lambda x, y: (0.1 * (x - offsets(y))[:, :2], torch.zeros(x.shape[0], 2)),
        latent=2,
        image_shape=(5,),
        labels=torch.arange(4),
    )


def convolutional() -> None:
    """Binary pixels from convolutions; their weights stand beside the code."""
    torch.manual_seed(6)
    decoder = torch.nn.Sequential(
        torch.nn.Linear(4, 8 * 2 * 3),
        torch.nn.Unflatten(1, (8, 2, 3)),
        torch.nn.ELU(),
        torch.nn.ConvTranspose2d(8, 3, 4, 2, 1, bias=False),
        torch.nn.BatchNorm2d(3),
        torch.nn.ELU(),
        torch.nn.Conv2d(3, 2, 3, 1, 1),
    )
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.copy_(2 * parameter + 0.1)
        decoder[4].running_mean.normal_()
        decoder[4].running_var.uniform_(0.5, 2.0)
    crais.export(
        HERE / "convolutional.pt",
        decoder=decoder.eval(),
        likelihood=crais.Bernoulli(),
        encoder=torch.nn.Sequential(torch.nn.Flatten(), _Halves(48, 4)),
        latent=4,
        image_shape=(2, 4, 6),
        binarisation="none",
    )


class _Residual(torch.nn.Module):
    def __init__(self, *body: torch.nn.Module) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(*body)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x)


def residual() -> None:
    """Normal pixels from blocks x + f(x), means by a sigmoid."""
    torch.manual_seed(7)
    decoder = torch.nn.Sequential(
        torch.nn.Linear(3, 4 * 2 * 3),
        torch.nn.Unflatten(1, (4, 2, 3)),
        _Residual(torch.nn.SiLU(), torch.nn.Conv2d(4, 4, 3, 1, 1)),
        torch.nn.ReLU(),
        _Residual(torch.nn.Conv2d(4, 5, 2), torch.nn.GELU(), torch.nn.ConvTranspose2d(5, 4, 2)),
        torch.nn.LeakyReLU(0.2),
        torch.nn.ConvTranspose2d(4, 1, 4, 2, 1),
        torch.nn.Sigmoid(),
    )
    crais.export(
        HERE / "residual.pt",
        decoder=decoder.eval(),
        likelihood=crais.Gaussian(0.2),
        latent=3,
        image_shape=(1, 4, 6),
    )


def normalised() -> None:
    """Binary pixels from normalised units and bilinear interpolation."""
    torch.manual_seed(8)
    decoder = torch.nn.Sequential(
        torch.nn.Linear(3, 4 * 2 * 3),
        torch.nn.LayerNorm(24),
        torch.nn.SiLU(),
        torch.nn.Unflatten(1, (4, 2, 3)),
        torch.nn.Upsample(scale_factor=2, mode="bilinear"),
        torch.nn.Conv2d(4, 4, 3, 1, 1),
        torch.nn.GroupNorm(2, 4, eps=1e-3),
        torch.nn.ReLU(),
        torch.nn.Conv2d(4, 1, 3, 1, 1),
    )
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    crais.export(
        HERE / "normalised.pt",
        decoder=decoder.eval(),
        likelihood=crais.Bernoulli(),
        latent=3,
        image_shape=(1, 4, 6),
    )


if __name__ == "__main__":
    normalised()
    convolutional()
    residual()
    linear_mlp()
    conditional()
    linear_gaussian()
    mixture_prior()
