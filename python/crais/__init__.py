"""crais: the log-likelihood of generative models, in nats, with error bars.

>>> import crais
>>> r = crais.evaluate(vae, images, likelihood=crais.Bernoulli())
>>> r.mean, r.mc_se
>>> crais.export("vae.pt2", decoder=vae.decode, likelihood=crais.Bernoulli(), encoder=vae.encode,
...              latent=32, image_shape=(1, 28, 28))

`evaluate`, `certify`, `log_normalizer` and `train_vae` are compiled (pip install); the rest needs
torch alone. A name is loaded when it is first asked for.
"""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import Any

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text())
_PLACES = {
    alias.name: str(node.module) for node in _STUB.body if isinstance(node, ast.ImportFrom) for alias in node.names
}
__all__ = list(_PLACES)


def __getattr__(name: str) -> Any:
    if name == "__version__" and importlib.util.find_spec("crais._built"):
        return importlib.import_module("crais._built").VERSION
    if name not in _PLACES:
        raise AttributeError(f"module 'crais' has no attribute '{name}'")
    place = _PLACES[name]
    is_module = place == __name__
    module = importlib.import_module(f"{place}.{name}" if is_module else place)
    value = globals()[name] = module if is_module else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return [*_PLACES, "__version__"]
