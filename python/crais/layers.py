"""Decoders and encoders whose layers crais knows: recognised by the operations that they do.

crais has its own evaluator for these, faster than compiled code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from crais.image_layers import (
    MOST_CONNECTIONS,
    MOST_UNITS,
    Convolution,
    Image,
    Layer,
    Normalisation,
    Skip,
    cropped,
    enlarged,
    identity,
    of_smaller,
    interpolated,
    shuffling,
)
from crais.likelihoods import Bernoulli, ContinuousBernoulli, Gaussian, Likelihood, SquaredError
from crais.outputs import unvalidated
from crais.priors import Prior, StandardNormal

_MOST_LAYERS = 100
_MOST_WEIGHTS = 1 << 20  # of a matrix that changes nothing


def _activated(activation: str | None, rows: Tensor) -> Tensor:
    if activation is None:
        return rows
    name, _, slope = activation.partition(":")
    if name == "leaky-relu":
        return F.leaky_relu(rows, float(slope or 0.01))
    return cast(Tensor, getattr(torch if name in ("tanh", "sigmoid") else F, name)(rows))


@dataclass
class Network:
    """Layers, one after the other."""

    layers: list[Layer]

    def __call__(self, rows: Tensor) -> Tensor:
        """[B, in] -> [B, out]."""
        sums: list[Tensor] = []
        outputs: list[Tensor] = []
        for layer in self.layers:
            added = layer.linear(rows)
            if layer.skip is not None:
                start = sums if layer.skip.before_activation else outputs
                added = added + start[layer.skip.start]
            sums.append(added)
            normalised = layer.normalisation(added) if layer.normalisation else added
            rows = _activated(layer.activation, normalised)
            outputs.append(rows)
        return rows

    def before(self, activation: str) -> Network | None:
        """Without this activation at the end; None where another is there."""
        *others, last = self.layers
        if last.activation != activation:
            return None
        return Network([*others, replace(last, activation=None)])

    @property
    def is_mlp(self) -> bool:
        """Dense layers with one activation between them, none after the last."""
        *hidden, last = self.layers
        kinds = {layer.activation for layer in hidden}
        plain = all(layer.kind == "dense" and layer.is_plain for layer in self.layers)
        return plain and len(kinds) <= 1 and None not in kinds and last.activation is None

    @property
    def activation(self) -> str:
        """Of an MLP."""
        return self.layers[0].activation or "tanh"

    def tensors(self, name: str) -> dict[str, Tensor]:
        """Under the names of models/model_manifest.cpp."""
        tensors: dict[str, Tensor] = {}
        for i, layer in enumerate(self.layers):
            tensors[f"{name}.{i}.weight"] = layer.weight.contiguous()
            tensors[f"{name}.{i}.bias"] = layer.bias.contiguous()
            if layer.normalisation is not None:
                tensors[f"{name}.{i}.scale"] = layer.normalisation.scale.contiguous()
                tensors[f"{name}.{i}.shift"] = layer.normalisation.shift.contiguous()
            if layer.interpolation is not None:
                tensors[f"{name}.{i}.places"] = layer.interpolation.places.contiguous()
        return tensors


def _log_joint(decoder: Network, likelihood: Likelihood, z: Tensor, x: Tensor) -> Tensor:
    output = decoder(z).reshape(x.shape)
    return StandardNormal().log_prob(z) + likelihood.log_prob(x, output)


@dataclass
class KnownDecoder:
    """A decoder under N(0, I) that the fused evaluator computes, of a model that is more."""

    decoder: Network
    likelihood: Likelihood

    def log_joint(self, z: Tensor, x: Tensor) -> Tensor:
        """log p(x, z) [B], nats."""
        return _log_joint(self.decoder, self.likelihood, z, x)

    def describe(self) -> dict[str, Any]:
        return {
            "likelihood": _likelihood(self.likelihood),
            "layers": [
                {"kind": layer.kind, "activation": layer.activation}
                | ({"skip": layer.skip.describe()} if layer.skip else {})
                | ({"normalisation": n.describe()} if (n := layer.normalisation) else {})
                | (layer.convolution.describe() if layer.convolution else {})
                | (layer.interpolation.describe() if layer.interpolation else {})
                for layer in self.decoder.layers
            ],
        }

    def tensors(self) -> dict[str, Tensor]:
        return self.decoder.tensors("decoder")


@dataclass
class MlpVae:
    """A model that the fused evaluator computes."""

    decoder: Network
    encoder: Network | None  # its last layer gives mean and log-variance, one after the other
    likelihood: Likelihood

    def log_joint(self, z: Tensor, x: Tensor) -> Tensor:
        """log p(x, z) [B], nats."""
        return _log_joint(self.decoder, self.likelihood, z, x)

    def describe(self) -> dict[str, Any]:
        """The activations, and the likelihood as eval-loglik writes it: "gaussian:0.1"."""
        return {
            "decoder": self.decoder.activation,
            "encoder": self.encoder.activation if self.encoder else None,
            "likelihood": _likelihood(self.likelihood),
        }

    def tensors(self) -> dict[str, Tensor]:
        encoder = self.encoder.tensors("mlp.encoder") if self.encoder else {}
        return self.decoder.tensors("mlp.decoder") | encoder


def recognise(
    decoder: Callable[[Tensor], Any],
    likelihood: Likelihood,
    prior: Prior,
    encoder: Callable[[Tensor], Any] | None,
    z: Tensor,
    x: Tensor,
) -> MlpVae | KnownDecoder | None:
    """What the fused evaluator can compute of a model: all of it, its decoder, or nothing.

    z [B, D] and x [B, *shape] are examples. The likelihood must be Bernoulli, or Gaussian with one
    standard deviation, and the prior a standard normal. Means may come from a sigmoid or tanh,
    probabilities must come from a sigmoid.
    """
    if _likelihood(likelihood) is None or type(prior) is not StandardNormal:
        return None
    outputs = _outputs(decoder, z)
    network = outputs[0].network() if len(outputs) == 1 else None
    if network is None or not _agree(network, decoder, z, x[0].numel()):
        return None
    of_logits = isinstance(likelihood, Bernoulli | ContinuousBernoulli)
    if isinstance(likelihood, Bernoulli | ContinuousBernoulli) and likelihood.probs:
        network, likelihood = network.before("sigmoid"), type(likelihood)()
    ends = (None,) if of_logits else (None, "sigmoid", "tanh")
    if network is None or network.layers[-1].activation not in ends:
        return None
    if network.is_mlp and encoder is None:
        return MlpVae(network, None, likelihood)
    heads = _heads(_outputs(encoder, x), z.shape[1]) if network.is_mlp and encoder else None
    return MlpVae(network, heads, likelihood) if heads else KnownDecoder(network, likelihood)


def _agree(network: Network, decoder: Callable[[Tensor], Any], z: Tensor, values: int) -> bool:
    """At other points than those traced; False where tracing has missed something."""
    others = 1 - z / 2
    try:
        with torch.no_grad(), unvalidated():
            found, wanted = network(others), decoder(others)
    except Exception:  # as for the trace
        return False
    if found.shape[1] != values or found.numel() != wanted.numel():
        return False
    largest = wanted.abs().max()
    return bool((found - wanted.reshape(found.shape)).abs().max() <= 1e-3 * (1 + largest))


def _likelihood(likelihood: Likelihood) -> str | None:
    """As eval-loglik writes it; None where its evaluators for MLPs do not know it."""
    if type(likelihood) in (Bernoulli, ContinuousBernoulli):
        return likelihood.spec()["name"]
    if type(likelihood) in (Gaussian, SquaredError):
        sd = likelihood.spec()["scale"]
        return f"gaussian:{sd:.9g}" if isinstance(sd, float) else None
    return None


@dataclass
class _Chain:
    """What an intermediate result is: the units of a network's last layer."""

    device: torch.device  # of the weights
    layers: list[Layer] = field(default_factory=list)
    enlarged: tuple[int, int] = (1, 1)  # each pixel of the last layer's output, so many times

    @property
    def _is_whole(self) -> bool:
        return self.enlarged == (1, 1)

    @property
    def _is_linear(self) -> bool:
        """True if no activation follows its last layer."""
        return self._is_whole and bool(self.layers) and self.layers[-1].activation is None

    @property
    def _is_own(self) -> bool:
        """True if it is a linear layer as it is."""
        return self._is_linear and self.layers[-1].is_plain

    def linear(self, weight: Tensor, bias: Tensor | None) -> _Chain | None:
        return self._then(_layer(weight, bias, weight.shape[0]))

    def enlarge(self, factors: tuple[int, int]) -> _Chain | None:
        """Nearest neighbours; a convolution must follow."""
        return replace(self, enlarged=factors) if self._is_whole else None

    def convolved(
        self, weight: Tensor, bias: Tensor | None, convolution: Convolution
    ) -> _Chain | None:
        if self.enlarged != (1, 1):
            found = of_smaller(weight, convolution, self.enlarged)
            if found is None:
                return None
            weight, convolution = found
            return replace(self, enlarged=(1, 1)).convolved(weight, bias, convolution)
        c = convolution
        places = math.prod((c.input if c.transposed else c.output)[1:])
        if places * math.prod(weight.shape[2:]) > MOST_CONNECTIONS:
            return None
        if max(math.prod(c.input), math.prod(c.output)) > MOST_UNITS:
            return None
        return self._then(_layer(weight, bias, c.output[0], c))

    def _then(self, layer: Layer) -> _Chain | None:
        if not self._is_whole or len(self.layers) == _MOST_LAYERS:
            return None
        joined = _joined(self.layers[-1], layer) if self._is_own else None
        if joined is not None:
            return replace(self, layers=[*self.layers[:-1], joined])
        return replace(self, layers=[*self.layers, layer])

    def scaled(self, scale: Tensor, shift: Tensor, channels: int) -> _Chain | None:
        """Each channel times its entry of `scale`, plus that of `shift`."""
        if not self._is_own:
            return None
        *before, last = self.layers
        if last.kind == "interpolation":  # which lets factors of channels through
            scaled = replace(self, layers=before).scaled(scale, 0 * shift, channels)
            last = replace(last, bias=last.bias * scale + shift)
            return replace(scaled, layers=[*scaled.layers, last]) if scaled else None
        if last.kind == "dense":  # its outputs are channels of several places each
            places = last.bias.numel() // channels
            scale, shift = (one.repeat_interleave(places) for one in (scale, shift))
        return replace(self, layers=[*self.layers[:-1], last.scaled(scale, shift)])

    @cached_property
    def written_out(self) -> _Chain | None:
        """With the enlarged image as that of a layer; the same one whoever asks."""
        if self.enlarged == (1, 1):
            return self
        smaller = replace(self, enlarged=(1, 1))
        larger = enlarged(self.layers[-1], self.enlarged) if smaller._is_own else None
        return replace(smaller, layers=[*self.layers[:-1], larger]) if larger else None

    def activated(self, activation: str) -> _Chain | None:
        if self.enlarged != (1, 1):
            if self.written_out is not None:
                return self.written_out.activated(activation)
            smaller = replace(self, enlarged=(1, 1)).activated(activation)  # before the copies
            return smaller.enlarge(self.enlarged) if smaller else None
        if not self._is_linear:
            return None
        last = replace(self.layers[-1], activation=activation)
        return replace(self, layers=[*self.layers[:-1], last])

    def added(self, earlier: _Chain) -> _Chain | None:
        """What this is, plus what it was earlier; None for what the evaluator does not keep."""
        start = len(earlier.layers) - 1
        if not self._is_own or not earlier._is_whole or not 0 <= start < len(self.layers) - 1:
            return None
        *before, source = zip(self.layers, earlier.layers)
        if any(one is not other for one, other in before):
            return None
        here, there = source
        if here.weight is not there.weight or here.skip != there.skip:
            return None
        if here.normalisation is not there.normalisation or here.activation != there.activation:
            if there.activation is not None or there.normalisation is not None:
                return None
            is_sum = True
        elif here.activation in _NOT_KEPT or here.normalisation is not None:
            return None
        else:
            is_sum = False
        if any(layer.skip and layer.skip.start == start for layer in self.layers):
            return None
        last = replace(self.layers[-1], skip=Skip(start, is_sum))
        return replace(self, layers=[*self.layers[:-1], last])

    def normalised(
        self, image: Image, groups: int, eps: float, scale: Tensor, shift: Tensor
    ) -> _Chain | None:
        """Scale and shift are of units."""
        whole = self.written_out if self.layers else self
        if whole is None:
            return None
        if not whole._is_linear or whole.layers[-1].normalisation is not None:
            whole = whole._copied(image)
        if whole is None:
            return None
        one = Normalisation(groups, eps, scale.to(self.device), shift.to(self.device))
        last = replace(whole.layers[-1], normalisation=one)
        return replace(whole, layers=[*whole.layers[:-1], last])

    def _copied(self, image: Image) -> _Chain | None:
        """With a layer that changes nothing at its end."""
        if self.layers and self.layers[-1].kind != "dense":
            return self.interpolated(image, lambda one: one)
        units = math.prod(image)
        if units**2 > _MOST_WEIGHTS:
            return None
        return self.linear(torch.eye(units, device=self.device), None)

    def followed_by(self, layer: Layer) -> _Chain | None:
        """Of images, without a bias."""
        assert layer.convolution is not None
        whole = self.written_out if self.layers else self
        weight = layer.weight.to(self.device)
        return whole.convolved(weight, None, layer.convolution) if whole else None

    def cropped(self, image: Image, axis: int, places: slice) -> _Chain | None:
        """A part of an image along an axis."""
        whole = self.written_out if self.layers else self
        if whole is None:
            return None
        last = whole.layers[-1] if whole.layers else None
        if last is None or last.kind == "dense":
            units = torch.arange(math.prod(image)).view(image)
            some = units.movedim(axis, 0)[places].movedim(0, axis).flatten()
            return whole._picked(some, units.numel())
        start, stop, step = places.indices(image[axis])
        if stop <= start:
            return None
        if step == 1 and last.convolution is not None and last.convolution.output == image:
            fitted = cropped(last, axis, start, stop)
            if fitted is not None:
                return replace(whole, layers=[*whole.layers[:-1], fitted])
        if axis > 0:
            return whole.interpolated(
                image, lambda one: one.movedim(1 + axis, 0)[places].movedim(0, 1 + axis)
            )
        part = cropped(identity(image), 0, start, stop) if step == 1 else None
        return whole.followed_by(part) if part else None

    def interpolated(self, image: Image, function: Callable[[Tensor], Tensor]) -> _Chain | None:
        """After what a function does with images, along each axis by itself."""
        whole = self.written_out if self.layers else self
        layer = interpolated(image, function)
        if whole is None or layer is None or layer.interpolation is None:
            return None
        places = layer.interpolation.places.to(self.device)
        return whole._then(
            replace(
                layer,
                weight=layer.weight.to(self.device),
                bias=layer.bias.to(self.device),
                interpolation=replace(layer.interpolation, places=places),
            )
        )

    def _picked(self, units: Tensor, number: int) -> _Chain | None:
        """Some units, of so many, of a dense layer or of the inputs."""
        if not self.layers:
            return self.linear(torch.eye(number)[units].to(self.device), None)
        units = units.to(self.device)
        last = self.layers[-1]
        if not last.is_plain:
            return None
        rows = replace(
            last, weight=last.weight[units].contiguous(), bias=last.bias[units].contiguous()
        )
        return replace(self, layers=[*self.layers[:-1], rows])

    def network(self) -> Network | None:
        """As a whole function; None where it does not end in a layer of its own."""
        if not self.layers or not self._is_whole or not self.layers[-1].is_plain:
            return None
        return Network(self.layers)


def _layer(
    weight: Tensor, bias: Tensor | None, outputs: int, convolution: Convolution | None = None
) -> Layer:
    weight = weight.detach().float()
    bias = weight.new_zeros(outputs) if bias is None else bias.detach().float()
    return Layer(weight, bias, convolution)


def _joined(first: Layer, second: Layer) -> Layer | None:
    """Two layers with nothing between them as one; None where that would be more work."""
    if first.kind != "dense":
        return None
    with torch.no_grad():
        bias = second.linear(first.bias.unsqueeze(0))
        if first.weight.shape[1] * bias.numel() > first.multiplications + second.multiplications:
            return None
        columns = second.linear(first.weight.t())
        columns = columns - second.linear(torch.zeros_like(first.bias).unsqueeze(0))
    return Layer(columns.t().contiguous(), bias[0])


def _heads(outputs: list[_Chain], latent: int) -> Network | None:
    """Mean and log-variance, whose layers but the last are the same, as one MLP."""
    parts = [network for chain in outputs if (network := chain.network()) is not None]
    if len(outputs) != 2 or len(parts) != 2 or not all(part.is_mlp for part in parts):
        return None
    mean, log_var = parts
    body, other = mean.layers[:-1], log_var.layers[:-1]
    shared = len(body) == len(other) and all(
        torch.equal(one.weight, two.weight)
        and torch.equal(one.bias, two.bias)
        and one.activation == two.activation
        for one, two in zip(body, other, strict=True)
    )
    last = (mean.layers[-1], log_var.layers[-1])
    if not shared:
        return None
    if any(layer.weight.shape[0] != latent for layer in last):
        return None
    joined = Layer(
        torch.cat([layer.weight for layer in last]), torch.cat([layer.bias for layer in last])
    )
    return Network([*body, joined])


def _outputs(function: Callable[[Tensor], Any], example: Tensor) -> list[_Chain]:
    """What each result of the function is; empty where one of them is no chain of layers."""
    try:
        with torch.inference_mode(False), torch.no_grad(), unvalidated():
            rows = example.clone()
            with _Tracer(rows) as tracer:
                results = function(rows)
    except Exception:  # whatever a user's code raises: it is no chain
        return []
    each = results if isinstance(results, (tuple, list)) else (results,)
    chains = [tracer.known.get(id(result)) for result in each]
    return cast(list[_Chain], chains) if all(isinstance(c, _Chain) for c in chains) else []


@dataclass
class _Call:
    """An operation of PyTorch's."""

    target: Any
    args: tuple[Any, ...]
    result: Any

    @property
    def source(self) -> Tensor:
        return cast(Tensor, self.args[0])


class _Tracer(TorchDispatchMode):
    """Follows the operations that a function does with some rows.

    `make_fx` would import the compiler, which takes longer than a run of a few images.
    """

    def __init__(self, rows: Tensor) -> None:
        super().__init__()
        # What each tensor that depends on the rows is, a chain or None, by its id.
        self.known: dict[int, _Chain | None] = {id(rows): _Chain(rows.device)}
        self._kept: list[Any] = []  # so that no id is used twice

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """PyTorch would import the compiler to say that it should leave this class alone."""
        return False

    def __torch_dispatch__(
        self, target: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = target(*args, **kwargs)
        if torch.Tag.nondeterministic_seeded in target.tags:
            raise ValueError("drawn")
        if not any(id(one) in self.known for one in tree_leaves((args, kwargs))):
            return result
        made = [one for one in tree_leaves(result) if isinstance(one, Tensor)]
        if not made:
            raise ValueError("values are looked at")
        found = _apply(_Call(target, args, result), [self._meaning(one) for one in args], kwargs)
        parts = found if isinstance(found, list) else [found]
        self._kept.append(made)
        for tensor, part in zip_longest(made, parts[: len(made)]):
            self.known[id(tensor)] = part
        return result

    def _meaning(self, argument: Any) -> Any:
        """A chain, a number or a tensor that does not depend on the rows; else `_UNKNOWN`."""
        if id(argument) in self.known:
            return self.known[id(argument)] or _UNKNOWN
        return argument


_UNKNOWN = object()


def _apply(call: _Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """What an operation makes: a chain, a list of chains; None for anything else."""
    name = str(call.target).removeprefix("aten.")
    if any(one is _UNKNOWN for one in args):
        return None
    if name == "addmm.default" and isinstance(args[1], _Chain) and not kwargs:
        fixed = isinstance(args[0], Tensor) and isinstance(args[2], Tensor)
        return args[1].linear(args[2].t(), args[0]) if fixed else None
    if not isinstance(args[0], _Chain):
        return None
    chain, *rest = args
    if name in ("add.Tensor", "add_.Tensor") and not kwargs:
        return _sum(call, chain, rest[0])
    kind, _, _ = name.partition(".")
    kind = kind.removesuffix("_")  # in place
    source = call.source
    if kind == "mm" and isinstance(rest[0], Tensor):
        return chain.linear(rest[0].t(), None)
    if kind == "convolution":
        return _convolved(call, chain, rest)
    if kind in ("upsample_nearest2d", "upsample_nearest1d"):
        images = [cast(Image, _image(one.shape)) for one in (call.result, source)]
        shapes = zip(images[0][1:], images[1][1:])
        wholes = [(large // small, large % small) for large, small in shapes]
        if all(rest == 0 for _, rest in wholes):
            return chain.enlarge((wholes[0][0], wholes[1][0]))
    if kind in _BATCH_NORMS:
        return [_normalised(chain, source.shape[1], _BATCH_NORMS[kind](rest))]
    if kind in _NORMALISATIONS:
        return [_NORMALISATIONS[kind](chain, source.shape, rest)]
    if kind in _ACTIVATIONS:
        activation = _ACTIVATIONS[kind](*rest, **kwargs)
        return chain.activated(activation) if activation else None
    if kind in _VIEWS:
        return chain if call.result.shape[0] == source.shape[0] else None
    if kind in ("slice", "expand") and call.result.shape == source.shape:
        return chain  # [:], which older versions of PyTorch write out; of broadcasting
    return None if kwargs else _interpolated(call, kind, chain, rest)


_VIEWS = "view _unsafe_view reshape detach clone alias squeeze unsqueeze".split()


def _image(shape: torch.Size) -> Image | None:
    """Rows of a shape [B, *], as images."""
    sizes = [int(n) for n in shape[1:]]
    if len(sizes) == 3:
        return sizes[0], sizes[1], sizes[2]
    if len(sizes) == 2:
        return sizes[0], 1, sizes[1]
    return (1, 1, sizes[0]) if len(sizes) == 1 else None


def _axis(dim: int, dims: int) -> int:
    """Of an image, for a dimension of a tensor with so many."""
    return 0 if dim == 1 and dims > 2 else dim - dims + 3


def _interpolated(call: _Call, kind: str, chain: _Chain, rest: list[Any]) -> Any:
    """A crop, pads, means, pixels from channels: linear maps without weights."""
    shape, value = call.source.shape, call.result
    image, dims = _image(shape), len(shape)
    if image is None:
        return None
    if kind == "slice" and rest[0] % dims > 0:
        places = slice(*rest[1:3], *rest[3:] or [1])
        return chain.cropped(image, _axis(rest[0] % dims, dims), places)
    if kind == "select" and rest[0] % dims > 0:
        dim = rest[0] % dims
        place = rest[1] % shape[dim]
        return chain.cropped(image, _axis(dim, dims), slice(place, place + 1))
    if kind == "split" and rest[1:] and rest[1] % dims > 0:
        dim, size = rest[1] % dims, rest[0]
        parts = [slice(i, i + size) for i in range(0, shape[dim], size)]
        return [chain.cropped(image, _axis(dim, dims), part) for part in parts]
    if not isinstance(value, Tensor) or value.shape[0] != shape[0] or dims < 3:
        return None
    if kind == "pixel_shuffle":
        return chain.followed_by(shuffling(image, rest[0]))
    if kind == "constant_pad_nd" and ((rest[1:] or [0])[0] != 0 or len(rest[0]) > 2 * (dims - 2)):
        return None
    if kind == "mean":
        if any(dim % dims < 2 for dim in rest[0]):
            return None
        rest = [rest[0], True]
    if kind not in _INTERPOLATIONS:
        return None

    def function(one: Tensor) -> Tensor:
        found = call.target(one.reshape(1, 1, *shape[2:]), *rest)
        return cast(Tensor, found.reshape(1, 1, -1, found.shape[-1]))

    return chain.interpolated(image, function)


# The same for each channel, along each axis by itself.
_INTERPOLATIONS = {
    *("upsample_bilinear2d", "upsample_bicubic2d", "upsample_linear1d"),
    *("upsample_nearest2d", "upsample_nearest1d", "_upsample_nearest_exact2d"),
    *("avg_pool2d", "avg_pool1d", "_adaptive_avg_pool2d", "mean", "constant_pad_nd"),
    *("reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d"),
}


def _sum(call: _Call, one: _Chain, other: Any) -> _Chain | None:
    """A residual connection, written in either order."""
    if not isinstance(other, _Chain) or call.args[0].shape != call.args[1].shape:
        return None
    longer, shorter = sorted((one, other), key=lambda chain: -len(chain.layers))
    return longer.added(shorter.written_out) if shorter.written_out else None


def _convolved(call: _Call, chain: _Chain, rest: list[Any]) -> _Chain | None:
    weight, bias, stride, padding, dilation, transposed, output_padding, groups = rest
    source = call.source
    known = isinstance(weight, Tensor) and (bias is None or isinstance(bias, Tensor))
    images = _image(source.shape), _image(call.result.shape)
    if not known or groups != 1 or source.dim() not in (3, 4) or None in images:
        return None
    if source.dim() == 3:
        weight = weight.unsqueeze(2)
    firsts = ([1], [0], [1], [0]) if source.dim() == 3 else ([], [], [], [])  # of one row
    sizes = (stride, padding, dilation, output_padding)
    convolution = Convolution(
        transposed, *cast(tuple[Image, Image], images),
        *([*first, *size] for first, size in zip(firsts, sizes)),
    )  # fmt: skip
    return chain.convolved(weight, bias, convolution)


def _normalised(chain: _Chain, channels: int, parameters: list[Any] | None) -> _Chain | None:
    """After batch normalisation by stored moments, which is linear."""
    if parameters is None or not all(isinstance(one, Tensor) for one in parameters[2:4]):
        return None
    weight, bias, mean, var, eps = parameters
    scale = (var.detach().double() + eps).rsqrt()
    scale = scale if weight is None else scale * weight.detach().double()
    shift = -mean.detach().double() * scale
    shift = shift if bias is None else shift + bias.detach().double()
    return chain.scaled(scale.float(), shift.float(), channels)


# By the names that versions of PyTorch trace them under, in eval mode alone: weight, bias, mean,
# variance, epsilon.
_BATCH_NORMS: dict[str, Callable[[list[Any]], list[Any] | None]] = {
    "_native_batch_norm_legit_no_training": lambda rest: [*rest[:4], rest[5]],
    "native_batch_norm": lambda rest: None if rest[4] else [*rest[:4], rest[6]],
    "cudnn_batch_norm": lambda rest: None if rest[4] else [*rest[:4], rest[6]],
}


def _group_normalised(chain: _Chain, shape: torch.Size, rest: list[Any]) -> _Chain | None:
    weight, bias, _, _, _, groups, eps = rest
    of_units = [
        one if one is None else one.view(-1, *[1] * (len(shape) - 2)) for one in (weight, bias)
    ]
    return _normalised_by_groups(chain, shape, groups, eps, *of_units)


def _layer_normalised(chain: _Chain, shape: torch.Size, rest: list[Any]) -> _Chain | None:
    sizes, weight, bias, eps = rest
    groups = math.prod(shape[1:]) // math.prod(sizes)
    return _normalised_by_groups(chain, shape, groups, eps, weight, bias)


def _normalised_by_groups(
    chain: _Chain,
    shape: torch.Size,
    groups: int,
    eps: float,
    weight: Tensor | None,
    bias: Tensor | None,
) -> _Chain | None:
    """Weight and bias are as wide as a row, or are repeated to be."""
    image = _image(shape)
    if image is None or shape[1] % groups != 0:  # of whole channels
        return None
    scale, shift = (
        (torch.tensor(missing) if one is None else one.detach().float())
        .expand(shape[1:])
        .flatten()
        .contiguous()
        for one, missing in ((weight, 1.0), (bias, 0.0))
    )
    return chain.normalised(image, groups, eps, scale, shift)


# By moments of the units themselves.
_NORMALISATIONS: dict[str, Callable[[_Chain, torch.Size, list[Any]], _Chain | None]] = {
    "native_group_norm": _group_normalised,
    "native_layer_norm": _layer_normalised,
}

# Their slope is no function of what they make, so that the evaluator keeps what they are given.
_NOT_KEPT = ("silu", "gelu", "mish")

# Of an operation's arguments, the activation as crais names it; None where it has no such.
_ACTIVATIONS: dict[str, Callable[..., str | None]] = {
    "tanh": lambda: "tanh",
    "relu": lambda: "relu",
    "sigmoid": lambda: "sigmoid",
    "silu": lambda: "silu",
    "mish": lambda: "mish",
    "gelu": lambda approximate="none": "gelu" if approximate == "none" else None,
    "elu": lambda *scales: "elu" if set(scales) <= {1} else None,
    "leaky_relu": lambda slope=0.01: _leaky(slope),
    "softplus": lambda beta=1, threshold=20: "softplus" if (beta, threshold) == (1, 20) else None,
}


def _leaky(slope: float) -> str | None:
    if not 0 <= slope <= 1:
        return None
    return "leaky-relu" if slope == 0.01 else f"leaky-relu:{slope!r}"
