"""What crais.export must refuse."""

import crais
import torch
from torch import Tensor

decoder = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 4))
ready = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Linear(8, 4)).eval()
plain = dict(likelihood=crais.Bernoulli(), latent=3, image_shape=(4,), quiet=True)


def branches(z: Tensor) -> Tensor:
    return ready(z) if z.abs().max() < 100 else -ready(z)


CASES = {
    "training": plain | dict(decoder=decoder),
    "infinite": plain | dict(decoder=lambda z: ready(z) / 0.0),
    "no pixels": plain | dict(decoder=ready, image_shape=(0,)),
    "no likelihood": dict(decoder=ready, latent=3, image_shape=(4,)),
    "a bad encoder": plain | dict(decoder=ready, encoder=ready[1:0]),
}


def said(file: str, **described: object) -> str:
    try:
        crais.export(file, **described)
    except crais.UsageError as error:
        return str(error)
    return "not refused"


def answers() -> dict[str, str]:
    """What it says of each."""
    scripts = {name: said("refused.pt", **described) for name, described in CASES.items()}
    return scripts | {"branches": said("refused.pt2", decoder=branches, **plain)}
