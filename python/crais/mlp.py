"""MLPs among decoders and encoders: recognised by the operations that they do.

crais has its own evaluator for MLPs, faster than compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F

from crais.likelihoods import Bernoulli, Gaussian, Likelihood, SquaredError
from crais.priors import Prior, StandardNormal

Layer = tuple[Tensor, Tensor]  # weight [out, in], bias [out]


@dataclass
class Mlp:
    """Linear layers with one activation between them."""

    layers: list[Layer]
    activation: str  # "tanh", "elu", "relu", "softplus"

    def __call__(self, rows: Tensor) -> Tensor:
        """[B, in] -> [B, out]."""
        activate = getattr(F, self.activation) if self.activation != "tanh" else torch.tanh
        for i, (weight, bias) in enumerate(self.layers):
            rows = F.linear(rows if i == 0 else activate(rows), weight, bias)
        return rows


@dataclass
class MlpVae:
    """A model that the fused evaluator computes."""

    decoder: Mlp
    encoder: Mlp | None  # its last layer gives mean and log-variance, one after the other
    likelihood: Likelihood

    def log_joint(self, z: Tensor, x: Tensor) -> Tensor:
        """log p(x, z) [B], nats."""
        output = self.decoder(z).reshape(x.shape)
        return StandardNormal().log_prob(z) + self.likelihood.log_prob(x, output)

    def describe(self) -> dict[str, Any]:
        """The activations, and the likelihood as eval-loglik writes it: "gaussian:0.1"."""
        return {
            "decoder": self.decoder.activation,
            "encoder": self.encoder.activation if self.encoder else None,
            "likelihood": _likelihood(self.likelihood),
        }

    def tensors(self) -> dict[str, Tensor]:
        parts = {"decoder": self.decoder, "encoder": self.encoder}
        return {
            f"mlp.{name}.{i}.{kind}": tensor
            for name, mlp in parts.items()
            if mlp is not None
            for i, layer in enumerate(mlp.layers)
            for kind, tensor in zip(("weight", "bias"), layer, strict=True)
        }


def recognise(
    decoder: Callable[[Tensor], Any],
    likelihood: Likelihood,
    prior: Prior,
    encoder: Callable[[Tensor], Any] | None,
    z: Tensor,
    x: Tensor,
) -> MlpVae | None:
    """The VAE that these functions are, if all of them are MLPs; None if one is not.

    z [B, D] and x [B, *shape] are examples. The likelihood must be Bernoulli, or Gaussian with one
    standard deviation, and the prior a standard normal.
    """
    if _likelihood(likelihood) is None or type(prior) is not StandardNormal:
        return None
    outputs = _outputs(decoder, z)
    mlp = outputs[0].mlp() if len(outputs) == 1 else None
    if mlp is None or mlp.layers[-1][0].shape[0] != x[0].numel():
        return None
    if encoder is None:
        return MlpVae(mlp, None, likelihood)
    heads = _heads(_outputs(encoder, x), z.shape[1])
    return MlpVae(mlp, heads, likelihood) if heads is not None else None


def _likelihood(likelihood: Likelihood) -> str | None:
    """As eval-loglik writes it; None where its evaluators for MLPs do not know it."""
    if type(likelihood) is Bernoulli:
        return "bernoulli"
    if type(likelihood) in (Gaussian, SquaredError):
        sd = likelihood.spec()["scale"]
        return f"gaussian:{sd:.9g}" if isinstance(sd, float) else None
    return None


@dataclass
class _Chain:
    """What an intermediate result is: entries `rows` of an MLP's last layer."""

    layers: list[Layer] = field(default_factory=list)
    activations: list[str] = field(default_factory=list)  # after each layer but the last
    rows: slice = field(default_factory=lambda: slice(None))

    def linear(self, weight: Tensor, bias: Tensor | None) -> _Chain | None:
        if len(self.activations) != len(self.layers) or self.rows != slice(None):
            return None
        weight = weight.detach().float()
        bias = weight.new_zeros(weight.shape[0]) if bias is None else bias.detach().float()
        return replace(self, layers=[*self.layers, (weight, bias)])

    def activated(self, name: str) -> _Chain | None:
        if len(self.activations) + 1 != len(self.layers) or self.rows != slice(None):
            return None
        return replace(self, activations=[*self.activations, name])

    def part(self, rows: slice) -> _Chain | None:
        whole = len(self.activations) + 1 == len(self.layers) and self.rows == slice(None)
        return replace(self, rows=rows) if whole else None

    def mlp(self) -> Mlp | None:
        """As a whole function; None where it ends in an activation, or has several."""
        kinds = set(self.activations)
        if len(self.activations) + 1 != len(self.layers) or len(kinds) > 1:
            return None
        weight, bias = self.layers[-1]
        last = (weight[self.rows].contiguous(), bias[self.rows].contiguous())
        return Mlp([*self.layers[:-1], last], kinds.pop() if kinds else "tanh")


def _heads(outputs: list[_Chain], latent: int) -> Mlp | None:
    """Mean and log-variance, whose layers but the last are the same, as one MLP."""
    parts = [mlp for chain in outputs if (mlp := chain.mlp()) is not None]
    if len(outputs) != 2 or len(parts) != 2:
        return None
    mean, log_var = parts
    body, other = mean.layers[:-1], log_var.layers[:-1]
    shared = len(body) == len(other) and all(
        torch.equal(one[0], two[0]) and torch.equal(one[1], two[1])
        for one, two in zip(body, other, strict=True)
    )
    last = (mean.layers[-1], log_var.layers[-1])
    if not shared or mean.activation != log_var.activation:
        return None
    if any(weight.shape[0] != latent for weight, _ in last):
        return None
    joined = (torch.cat([last[0][0], last[1][0]]), torch.cat([last[0][1], last[1][1]]))
    return Mlp([*body, joined], mean.activation)


def _outputs(function: Callable[[Tensor], Any], example: Tensor) -> list[_Chain]:
    """What each result of the function is; empty where one of them is no chain of layers."""
    from torch.fx.experimental.proxy_tensor import make_fx

    try:
        with torch.no_grad():
            tracer = make_fx(  # without values, so that control flow that depends on them fails
                lambda rows: function(rows), tracing_mode="fake", _allow_non_fake_inputs=True
            )
            graph = tracer(example)
    except Exception:  # whatever a user's code raises under tracing: it is no MLP
        return []
    found: dict[torch.fx.Node, Any] = {}
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            found[node] = _Chain()
        elif node.op == "get_attr":
            found[node] = getattr(graph, node.target)
        elif node.op == "call_function":
            args = [found.get(a) if isinstance(a, torch.fx.Node) else a for a in node.args]
            found[node] = _apply(node, args)
        elif node.op == "output":
            results = node.args[0] if isinstance(node.args[0], (tuple, list)) else (node.args[0],)
            chains = [found.get(result) for result in results]
            if all(isinstance(chain, _Chain) for chain in chains):
                return cast(list[_Chain], chains)
    return []


def _apply(node: torch.fx.Node, args: list[Any]) -> Any:
    """What a node of the graph is: a chain, a list of chains, a tensor; None for anything else."""
    name = str(node.target).removeprefix("aten.")
    if name == "t.default" and isinstance(args[0], Tensor):
        return args[0].t()
    if name == "<built-in function getitem>" and isinstance(args[0], list):
        return args[0][args[1]]
    if name == "addmm.default" and isinstance(args[1], _Chain) and not node.kwargs:
        fixed = isinstance(args[0], Tensor) and isinstance(args[2], Tensor)
        return args[1].linear(args[2].t(), args[0]) if fixed else None
    if not isinstance(args[0] if args else None, _Chain):
        return None
    chain, *rest = args
    kind, _, _ = name.partition(".")
    source = cast(torch.fx.Node, node.args[0]).meta["val"]
    if kind == "mm" and isinstance(rest[0], Tensor):
        return chain.linear(rest[0].t(), None)
    if kind in _ACTIVATIONS and rest in ([], _ACTIVATIONS[kind]):
        return chain.activated(kind)
    if kind in ("view", "_unsafe_view", "reshape", "detach", "clone", "alias"):
        return chain if node.meta["val"].shape[0] == source.shape[0] else None
    if kind == "split" and source.dim() == 2 and len(rest) == 2 and rest[1] == 1:
        return [chain.part(slice(i, i + rest[0])) for i in range(0, source.shape[1], rest[0])]
    if kind == "slice" and node.meta["val"].shape == source.shape:
        return chain  # [:], which older versions of PyTorch write out
    if kind == "slice" and source.dim() == 2 and len(rest) == 3 and rest[0] == 1:
        return chain.part(slice(rest[1], min(rest[2], source.shape[1])))
    return None


# Their arguments where they are written out: those of PyTorch's own defaults.
_ACTIVATIONS: dict[str, list[Any]] = {
    "tanh": [],
    "relu": [],
    "elu": [1.0],
    "softplus": [1.0, 20.0],
}
