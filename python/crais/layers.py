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
from torch.utils._pytree import tree_leaves

from crais.forces import EagerMode
from crais.image_layers import (
    MOST_CONNECTIONS,
    MOST_UNITS,
    Convolution,
    Image,
    Layer,
    Normalisation,
    Skip,
    Unknown,
    enlarged,
    interpolated,
    of_smaller,
    require,
    shuffling,
    some_channels,
)
from crais.likelihoods import Bernoulli, ContinuousBernoulli, Gaussian, Likelihood
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
        """The activation between the layers of an MLP; tanh where there is one layer."""
        return self.layers[0].activation or "tanh"

    def tensors(self, name: str) -> dict[str, Tensor]:
        """Weights and biases under the names of models/model_manifest.cpp."""
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


@dataclass
class KnownModel:
    """A decoder under N(0, I) that the fused evaluator computes."""

    decoder: Network
    likelihood: Likelihood
    encoder: Network | None = None  # its last layer gives mean and log-variance, side by side
    is_mlp: bool = False  # it is all of the model: an MLP, whose encoder is one too or not there

    def log_joint(self, z: Tensor, x: Tensor) -> Tensor:
        """log p(x, z) [B], nats."""
        output = self.decoder(z).reshape(x.shape)
        return StandardNormal().log_prob(z) + self.likelihood.log_prob(x, output)

    @property
    def key(self) -> str:
        """The key of its description in a manifest (models/model_manifest.h)."""
        return "mlp" if self.is_mlp else "decoder"

    def describe(self) -> dict[str, Any]:
        """Its layers, and the likelihood as eval-loglik writes it: "gaussian:0.1"."""
        likelihood = {"likelihood": _likelihood(self.likelihood)}
        if not self.is_mlp:
            return likelihood | {"layers": [layer.describe() for layer in self.decoder.layers]}
        encoder = self.encoder.activation if self.encoder else None
        return likelihood | {"decoder": self.decoder.activation, "encoder": encoder}

    def tensors(self) -> dict[str, Tensor]:
        if not self.is_mlp:
            return self.decoder.tensors("decoder")
        encoder = self.encoder.tensors("mlp.encoder") if self.encoder else {}
        return self.decoder.tensors("mlp.decoder") | encoder


def recognise(
    decoder: Callable[[Tensor], Any],
    likelihood: Likelihood,
    prior: Prior,
    encoder: Callable[[Tensor], Any] | None,
    z: Tensor,
    x: Tensor,
) -> KnownModel | None:
    """What the fused evaluator can compute of a model: all of it, its decoder, or nothing.

    z [B, D] and x [B, *shape] are examples. The likelihood must be Bernoulli, or Gaussian with one
    standard deviation, and the prior a standard normal. Means may come from a sigmoid or tanh,
    probabilities must come from a sigmoid.
    """
    if _likelihood(likelihood) is None or type(prior) is not StandardNormal:
        return None
    networks = _networks(decoder, z)
    if len(networks) != 1 or not _agree(networks[0], decoder, z, x[0].numel()):
        return None
    network: Network | None = networks[0]
    ends: tuple[str | None, ...] = (None, "sigmoid", "tanh")
    if isinstance(likelihood, Bernoulli | ContinuousBernoulli):
        ends = (None,)
        if likelihood.probs:
            network, likelihood = networks[0].before("sigmoid"), type(likelihood)()
    if network is None or network.layers[-1].activation not in ends:
        return None
    heads = _heads(_networks(encoder, x), z.shape[1]) if network.is_mlp and encoder else None
    is_whole = network.is_mlp and (encoder is None or heads is not None)
    return KnownModel(network, likelihood, heads, is_whole)


def _agree(network: Network, decoder: Callable[[Tensor], Any], z: Tensor, values: int) -> bool:
    """At other points than those traced; False where tracing has missed something."""
    others = 1 - z / 2
    try:
        with torch.no_grad(), unvalidated():
            ours, theirs = network(others), decoder(others)
    except Exception:  # as for the trace
        return False
    if ours.shape[1] != values or ours.numel() != theirs.numel():
        return False
    largest = theirs.abs().max()
    return bool((ours - theirs.reshape(ours.shape)).abs().max() <= 1e-3 * (1 + largest))


def _likelihood(likelihood: Likelihood) -> str | None:
    """As eval-loglik writes it; None where its evaluators for MLPs do not know it."""
    if type(likelihood) in (Bernoulli, ContinuousBernoulli):
        return likelihood.spec()["name"]
    if type(likelihood) is Gaussian:
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

    def _ending(self, **changes: Any) -> _Chain:
        """With another last layer."""
        return replace(self, layers=[*self.layers[:-1], replace(self.layers[-1], **changes)])

    def linear(self, weight: Tensor, bias: Tensor | None) -> _Chain:
        return self._then(_layer(weight, bias, weight.shape[0]))

    def enlarge(self, factors: tuple[int, int]) -> _Chain:
        """Nearest neighbours; a convolution must follow."""
        require(self._is_whole)
        return replace(self, enlarged=factors)

    def convolved(self, weight: Tensor, bias: Tensor | None, convolution: Convolution) -> _Chain:
        if not self._is_whole:
            weight, convolution = of_smaller(weight, convolution, self.enlarged)
            return replace(self, enlarged=(1, 1)).convolved(weight, bias, convolution)
        c = convolution
        places = math.prod((c.input if c.transposed else c.output)[1:])
        require(places * math.prod(weight.shape[2:]) <= MOST_CONNECTIONS)
        require(max(math.prod(c.input), math.prod(c.output)) <= MOST_UNITS)
        return self._then(_layer(weight, bias, c.output[0], c))

    def _then(self, layer: Layer) -> _Chain:
        require(self._is_whole and len(self.layers) < _MOST_LAYERS)
        joined = _joined(self.layers[-1], layer) if self._is_own else None
        if joined is not None:
            return replace(self, layers=[*self.layers[:-1], joined])
        return replace(self, layers=[*self.layers, layer])

    def scaled(self, scale: Tensor, shift: Tensor, channels: int) -> _Chain:
        """Each channel times its entry of `scale`, plus that of `shift`."""
        require(self._is_own)
        *before, last = self.layers
        if last.kind == "interpolation":  # which lets factors of channels through
            scaled = replace(self, layers=before).scaled(scale, 0 * shift, channels)
            last = replace(last, bias=last.bias * scale + shift)
            return replace(scaled, layers=[*scaled.layers, last])
        if last.kind == "dense":  # its outputs are channels of several places each
            places = last.bias.numel() // channels
            scale, shift = (one.repeat_interleave(places) for one in (scale, shift))
        return replace(self, layers=[*before, last.scaled(scale, shift)])

    @cached_property
    def written_out(self) -> _Chain:
        """With the enlarged image as that of a layer; the same one whoever asks."""
        if self._is_whole:
            return self
        smaller = replace(self, enlarged=(1, 1))
        require(smaller._is_own)
        larger = enlarged(self.layers[-1], self.enlarged)
        return replace(smaller, layers=[*self.layers[:-1], larger])

    def activated(self, activation: str) -> _Chain:
        if self._is_whole:
            require(self._is_linear)
            return self._ending(activation=activation)
        try:
            return self.written_out.activated(activation)
        except Unknown:  # then before the copies
            smaller = replace(self, enlarged=(1, 1))
            return smaller.activated(activation).enlarge(self.enlarged)

    def added(self, earlier: _Chain) -> _Chain:
        """What this is, plus what it was earlier, if that is among what the evaluator keeps."""
        start = len(earlier.layers) - 1
        require(self._is_own and earlier._is_whole and 0 <= start < len(self.layers) - 1)
        *before, (last, earlier_last) = zip(self.layers, earlier.layers)
        require(all(one is other for one, other in before))
        require(last.weight is earlier_last.weight and last.skip == earlier_last.skip)
        has_grown = last.normalisation is not earlier_last.normalisation
        before_activation = has_grown or last.activation != earlier_last.activation
        if before_activation:
            require(earlier_last.activation is None and earlier_last.normalisation is None)
        else:
            require(last.activation not in _NOT_KEPT and last.normalisation is None)
        require(not any(layer.skip and layer.skip.start == start for layer in self.layers))
        return self._ending(skip=Skip(start, before_activation))

    def normalised(
        self, image: Image, groups: int, eps: float, scale: Tensor, shift: Tensor
    ) -> _Chain:
        """Scale and shift are of units."""
        whole = self.written_out
        if not whole._is_linear or whole.layers[-1].normalisation is not None:
            whole = whole._copied(image)
        one = Normalisation(groups, eps, scale.to(self.device), shift.to(self.device))
        return whole._ending(normalisation=one)

    def _copied(self, image: Image) -> _Chain:
        """With a layer that changes nothing at its end."""
        if self.layers and self.layers[-1].kind != "dense":
            return self.interpolated(image, lambda one: one)
        units = math.prod(image)
        require(units**2 <= _MOST_WEIGHTS)
        return self.linear(torch.eye(units, device=self.device), None)

    def followed_by(self, weight: Tensor, convolution: Convolution) -> _Chain:
        """This map of images, then a convolution."""
        return self.written_out.convolved(weight.to(self.device), None, convolution)

    def cropped(self, image: Image, axis: int, places: slice) -> _Chain:
        """A part of an image along an axis."""
        whole = self.written_out
        last = whole.layers[-1] if whole.layers else None
        if last is None or last.kind == "dense":
            units = torch.arange(math.prod(image)).view(image)
            picked = units.movedim(axis, 0)[places].movedim(0, axis).flatten()
            return whole._picked(picked, units.numel())
        start, stop, step = places.indices(image[axis])
        require(start < stop)
        if axis > 0:
            return whole.interpolated(
                image, lambda one: one.movedim(1 + axis, 0)[places].movedim(0, 1 + axis)
            )
        require(step == 1)
        c = last.convolution
        if c is None or c.output != image or not last.is_plain:
            return whole.followed_by(*some_channels(image, start, stop))
        return whole._ending(
            weight=last.weight.narrow(1 if c.transposed else 0, start, stop - start).contiguous(),
            bias=last.bias[start:stop],
            convolution=replace(c, output=(stop - start, *image[1:])),
        )

    def interpolated(self, image: Image, function: Callable[[Tensor], Tensor]) -> _Chain:
        """After what a function does with images, along each axis by itself."""
        return self.written_out._then(interpolated(image, function, self.device))

    def _picked(self, units: Tensor, number: int) -> _Chain:
        """Some units, of so many, of a dense layer or of the inputs."""
        if not self.layers:
            return self.linear(torch.eye(number)[units].to(self.device), None)
        units, last = units.to(self.device), self.layers[-1]
        require(last.is_plain)
        return self._ending(
            weight=last.weight[units].contiguous(), bias=last.bias[units].contiguous()
        )

    def network(self) -> Network:
        """As a whole function, which ends in a layer of its own."""
        require(bool(self.layers) and self._is_whole and self.layers[-1].is_plain)
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


def _heads(networks: list[Network], latent: int) -> Network | None:
    """Mean and log-variance, whose layers but the last are the same, as one MLP."""
    if len(networks) != 2 or not all(part.is_mlp for part in networks):
        return None
    (*body, mean), (*other, log_var) = (part.layers for part in networks)
    shared = len(body) == len(other) and all(
        torch.equal(one.weight, two.weight)
        and torch.equal(one.bias, two.bias)
        and one.activation == two.activation
        for one, two in zip(body, other, strict=True)
    )
    if not shared or any(layer.weight.shape[0] != latent for layer in (mean, log_var)):
        return None
    weight, bias = torch.cat([mean.weight, log_var.weight]), torch.cat([mean.bias, log_var.bias])
    return Network([*body, Layer(weight, bias)])


def _networks(function: Callable[[Tensor], Any], example: Tensor) -> list[Network]:
    """What each result of the function is; empty where one of them is no chain of layers."""
    try:
        with torch.inference_mode(False), torch.no_grad(), unvalidated():
            rows = example.clone()
            with _Tracer(rows) as tracer:
                results = function(rows)
        each = results if isinstance(results, (tuple, list)) else (results,)
        return [tracer.chain_of(result).network() for result in each]
    except Exception:  # whatever a user's code raises: it is no chain
        return []


@dataclass
class _Call:
    """An operation of PyTorch's."""

    target: Any
    args: tuple[Any, ...]
    result: Any

    @property
    def source(self) -> Tensor:
        return cast(Tensor, self.args[0])


class _Tracer(EagerMode):
    """Follows the operations that a function does with some rows.

    `make_fx` would import the compiler, which takes longer than a run of a few images.
    """

    def __init__(self, rows: Tensor) -> None:
        super().__init__()
        # What each tensor that depends on the rows is, a chain or None, by its id.
        self.known: dict[int, _Chain | None] = {id(rows): _Chain(rows.device)}
        self._kept: list[Any] = []  # so that no id is used twice

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
        try:
            meant = [self.chain_of(one) if id(one) in self.known else one for one in args]
            chains = _apply(_Call(target, args, result), meant, kwargs)
        except Unknown:
            chains = None
        parts = chains if isinstance(chains, list) else [chains]
        self._kept.append(made)
        for tensor, part in zip_longest(made, parts[: len(made)]):
            self.known[id(tensor)] = part
        return result

    def chain_of(self, tensor: Any) -> _Chain:
        """What a tensor that depends on the rows is."""
        chain = self.known.get(id(tensor))
        if chain is None:
            raise Unknown
        return chain


def _apply(call: _Call, args: list[Any], kwargs: dict[str, Any]) -> _Chain | list[_Chain]:
    """What an operation makes. Raises Unknown for anything else."""
    name = str(call.target).removeprefix("aten.")
    if name == "addmm.default" and isinstance(args[1], _Chain):
        require(isinstance(args[0], Tensor) and isinstance(args[2], Tensor) and not kwargs)
        return args[1].linear(args[2].t(), args[0])
    chain, *rest = args
    if not isinstance(chain, _Chain):
        raise Unknown
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
        sizes = zip(_image(call.result.shape)[1:], _image(source.shape)[1:])
        (rows, no_rows), (columns, no_columns) = (divmod(large, small) for large, small in sizes)
        if no_rows == no_columns == 0:
            return chain.enlarge((rows, columns))
    if kind in _BATCH_NORMS:
        return [_normalised(chain, source.shape[1], _BATCH_NORMS[kind](rest))]
    if kind in _NORMALISATIONS:
        return [_NORMALISATIONS[kind](chain, source.shape, rest)]
    if kind in _ACTIVATIONS:
        activation = _ACTIVATIONS[kind](*rest, **kwargs)
        if activation is None:
            raise Unknown
        return chain.activated(activation)
    if kind in _VIEWS:
        require(call.result.shape[0] == source.shape[0])
        return chain
    if kind in ("slice", "expand") and call.result.shape == source.shape:
        return chain  # [:], which older versions of PyTorch write out; of broadcasting
    require(not kwargs)
    return _interpolated(call, kind, chain, rest)


_VIEWS = "view _unsafe_view reshape detach clone alias squeeze unsqueeze".split()


def _image(shape: torch.Size) -> Image:
    """Rows of a shape [B, *], as images."""
    sizes = [int(n) for n in shape[1:]]
    require(1 <= len(sizes) <= 3)
    channels = sizes[0] if len(sizes) > 1 else 1
    return channels, sizes[1] if len(sizes) == 3 else 1, sizes[-1]


def _axis(dim: int, dims: int) -> int:
    """The axis of an image [C, H, W] for dimension `dim` of a tensor with `dims` dimensions."""
    return 0 if dim == 1 and dims > 2 else dim - dims + 3


def _interpolated(call: _Call, kind: str, chain: _Chain, rest: list[Any]) -> Any:
    """A crop, pads, means, pixels from channels: linear maps without weights."""
    shape, value = call.source.shape, call.result
    image, dims = _image(shape), len(shape)
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
    require(isinstance(value, Tensor) and value.shape[0] == shape[0] and dims > 2)
    if kind == "pixel_shuffle":
        return chain.followed_by(*shuffling(image, rest[0]))
    if kind == "constant_pad_nd":
        require((rest[1:] or [0])[0] == 0 and len(rest[0]) <= 2 * (dims - 2))
    if kind == "mean":
        require(all(dim % dims > 1 for dim in rest[0]))
        rest = [rest[0], True]
    require(kind in _INTERPOLATIONS)

    def function(one: Tensor) -> Tensor:
        interpolated = call.target(one.reshape(1, 1, *shape[2:]), *rest)
        return cast(Tensor, interpolated.reshape(1, 1, -1, interpolated.shape[-1]))

    return chain.interpolated(image, function)


# The same for each channel, along each axis by itself.
_INTERPOLATIONS = {
    *("upsample_bilinear2d", "upsample_bicubic2d", "upsample_linear1d"),
    *("upsample_nearest2d", "upsample_nearest1d", "_upsample_nearest_exact2d"),
    *("avg_pool2d", "avg_pool1d", "_adaptive_avg_pool2d", "mean", "constant_pad_nd"),
    *("reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d"),
}


def _sum(call: _Call, one: _Chain, other: Any) -> _Chain:
    """A residual connection, written in either order."""
    if not isinstance(other, _Chain) or call.args[0].shape != call.args[1].shape:
        raise Unknown
    longer, shorter = sorted((one, other), key=lambda chain: -len(chain.layers))
    return longer.added(shorter.written_out)


def _convolved(call: _Call, chain: _Chain, rest: list[Any]) -> _Chain:
    weight, bias, stride, padding, dilation, transposed, output_padding, groups = rest
    dims = call.source.dim()
    require(isinstance(weight, Tensor) and (bias is None or isinstance(bias, Tensor)))
    require(groups == 1 and dims in (3, 4))
    images = _image(call.source.shape), _image(call.result.shape)
    if dims == 3:  # images of one row
        weight = weight.unsqueeze(2)
        stride, padding, dilation, output_padding = (
            [first, *size]
            for first, size in zip((1, 0, 1, 0), (stride, padding, dilation, output_padding))
        )
    sizes = (stride, padding, dilation, output_padding)
    return chain.convolved(weight, bias, Convolution(transposed, *images, *sizes))


def _normalised(chain: _Chain, channels: int, parameters: list[Any] | None) -> _Chain:
    """After batch normalisation by stored moments, which is linear."""
    if parameters is None or not all(isinstance(one, Tensor) for one in parameters[2:4]):
        raise Unknown
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


def _group_normalised(chain: _Chain, shape: torch.Size, rest: list[Any]) -> _Chain:
    weight, bias, _, _, _, groups, eps = rest
    of_units = [
        one if one is None else one.view(-1, *[1] * (len(shape) - 2)) for one in (weight, bias)
    ]
    return _normalised_by_groups(chain, shape, groups, eps, *of_units)


def _layer_normalised(chain: _Chain, shape: torch.Size, rest: list[Any]) -> _Chain:
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
) -> _Chain:
    """Weight and bias are as wide as a row, or are repeated to be."""
    image = _image(shape)
    require(shape[1] % groups == 0)  # of whole channels
    scale, shift = (
        (torch.tensor(missing) if one is None else one.detach().float())
        .expand(shape[1:])
        .flatten()
        .contiguous()
        for one, missing in ((weight, 1.0), (bias, 0.0))
    )
    return chain.normalised(image, groups, eps, scale, shift)


# By moments of the units themselves.
_NORMALISATIONS: dict[str, Callable[[_Chain, torch.Size, list[Any]], _Chain]] = {
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
