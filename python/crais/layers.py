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
        bare = [*others, replace(last, activation=None)]
        return Network(bare) if last.activation == activation else None

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
            parts = {"weight": layer.weight, "bias": layer.bias}
            if n := layer.normalisation:
                parts |= {"scale": n.scale, "shift": n.shift}
            if one := layer.interpolation:
                parts["places"] = one.places
            tensors |= {f"{name}.{i}.{key}": part.contiguous() for key, part in parts.items()}
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

    z [B, D] and x [B, *shape] are examples. The likelihood must be Bernoulli, or Gaussian with one standard deviation,
    and the prior a standard normal. Means may come from a sigmoid or tanh, probabilities must come from a sigmoid.
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
    return bool((ours - theirs.reshape(ours.shape)).abs().max() <= 1e-4 * (1 + largest))


def _likelihood(likelihood: Likelihood) -> str | None:
    """As eval-loglik writes it; None where its evaluators for MLPs do not know it."""
    if type(likelihood) in (Bernoulli, ContinuousBernoulli):
        return likelihood.name
    log_sd = likelihood.log_scale if type(likelihood) is Gaussian else None
    return None if log_sd is None or log_sd.numel() > 1 else f"gaussian:{float(log_sd.exp()):.9g}"


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

    @property
    def _smaller(self) -> _Chain:
        """Before the copies of pixels."""
        return replace(self, enlarged=(1, 1))

    def _with_last(self, layer: Layer) -> _Chain:
        return replace(self, layers=[*self.layers[:-1], layer])

    def _ending(self, **changes: Any) -> _Chain:
        return self._with_last(replace(self.layers[-1], **changes))

    def linear(self, weight: Tensor, bias: Tensor | None) -> _Chain:
        return self._then(_layer(weight, bias, weight.shape[0]))

    def enlarge(self, factors: tuple[int, int]) -> _Chain:
        """Nearest neighbours; a convolution must follow."""
        require(self._is_whole)
        return replace(self, enlarged=factors)

    def convolved(self, weight: Tensor, bias: Tensor | None, c: Convolution) -> _Chain:
        if not self._is_whole:
            weight, c = of_smaller(weight, c, self.enlarged)
            return self._smaller.convolved(weight, bias, c)
        require(c.places * math.prod(weight.shape[2:]) <= MOST_CONNECTIONS)
        return self._then(_layer(weight, bias, c.output[0], c))

    def _then(self, layer: Layer) -> _Chain:
        require(self._is_whole and len(self.layers) < _MOST_LAYERS)
        if images := layer.convolution or layer.interpolation:
            require(max(math.prod(images.input), math.prod(images.output)) <= MOST_UNITS)
        joined = _joined(self.layers[-1], layer) if self._is_own else None
        return self._with_last(joined) if joined else replace(self, layers=[*self.layers, layer])

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
        return self._with_last(last.scaled(scale, shift))

    @cached_property
    def written_out(self) -> _Chain:
        """With the enlarged image as that of a layer; the same one whoever asks."""
        if self._is_whole:
            return self
        require(self._smaller._is_own)
        return self._smaller._with_last(enlarged(self.layers[-1], self.enlarged))

    def activated(self, activation: str) -> _Chain:
        if self._is_whole:
            require(self._is_linear)
            return self._ending(activation=activation)
        try:
            return self.written_out.activated(activation)
        except Unknown:  # then before the copies
            return self._smaller.activated(activation).enlarge(self.enlarged)

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

    def normalised(self, image: Image, groups: int, eps: float, scale: Tensor, shift: Tensor) -> _Chain:
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

        def part(one: Tensor, axis: int) -> Tensor:
            return one.movedim(axis, 0)[places].movedim(0, axis)

        whole = self.written_out
        units = part(torch.arange(math.prod(image)).view(image), axis).flatten()
        require(len(units) > 0)
        if not whole.layers:
            return whole.linear(torch.eye(math.prod(image))[units].to(self.device), None)
        last = whole.layers[-1]
        if last.kind == "dense":
            require(last.is_plain)
            return whole._with_last(last.picked(units.to(self.device)))
        if axis > 0:
            return whole.interpolated(image, lambda one: part(one, 1 + axis))
        channels = torch.arange(image[0])[places]
        if last.convolution is None or last.convolution.output != image or not last.is_plain:
            return whole.followed_by(*some_channels(image, channels))
        return whole._with_last(last.picked(channels.to(self.device)))

    def interpolated(self, image: Image, function: Callable[[Tensor], Tensor]) -> _Chain:
        """After what a function does with images, along each axis by itself."""
        return self.written_out._then(interpolated(image, function, self.device))

    def network(self) -> Network:
        """As a whole function, which ends in a layer of its own."""
        require(bool(self.layers) and self._is_whole and self.layers[-1].is_plain)
        return Network(self.layers)


def _layer(weight: Tensor, bias: Tensor | None, outputs: int, convolution: Convolution | None = None) -> Layer:
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
        torch.equal(one.weight, two.weight) and torch.equal(one.bias, two.bias) and one.activation == two.activation
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


class _Tracer(EagerMode):
    """Follows the operations that a function does with some rows.

    `make_fx` would import the compiler, which takes longer than a run of a few images.
    """

    def __init__(self, rows: Tensor) -> None:
        super().__init__()
        # What each tensor that depends on the rows is, a chain or None, by its id.
        self.known: dict[int, _Chain | None] = {id(rows): _Chain(rows.device)}
        self._kept: list[Any] = []  # so that no id is used twice

    def __torch_dispatch__(self, target: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
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
            chains = _apply(_Call(target, args, made), meant, kwargs)
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


@dataclass
class _Call:
    """An operation of PyTorch's."""

    target: Any
    args: tuple[Any, ...]
    made: list[Tensor]

    @property
    def kind(self) -> str:
        """As "add", also of "aten.add_.Tensor"."""
        return str(self.target).split(".")[1].removesuffix("_")

    @property
    def source(self) -> Tensor:
        """What depends on the rows."""
        return cast(Tensor, self.args[1 if self.kind == "addmm" else 0])

    @property
    def image(self) -> Image:
        return _image(self.source)


def _apply(call: _Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The chain that an operation makes, or a list of them. Raises Unknown for anything else."""
    kind = call.kind
    require(kind in _OPERATIONS or kind in _ACTIVATIONS)
    chains = [i for i, one in enumerate(args) if isinstance(one, _Chain)]
    require(kind == "add" or chains == [1 if kind == "addmm" else 0])
    require(call.made[0].shape[:1] == call.source.shape[:1])
    try:
        if kind not in _ACTIVATIONS:
            return _OPERATIONS[kind](call, *args, **kwargs)
        activation = _ACTIVATIONS[kind](*args[1:], **kwargs)
    except TypeError:  # arguments of another signature
        raise Unknown from None
    require(activation is not None)
    return args[0].activated(activation)


def _image(rows: Tensor) -> Image:
    """Rows [B, *], as images."""
    sizes = rows.shape[1:]
    require(1 <= len(sizes) <= 3)
    channels = sizes[0] if len(sizes) > 1 else 1
    return channels, sizes[1] if len(sizes) == 3 else 1, sizes[-1]


def _sum(call: _Call, one: Any, other: Any) -> _Chain:
    """A residual connection, written in either order."""
    require(isinstance(one, _Chain) and isinstance(other, _Chain))
    require(call.args[0].shape == call.args[1].shape)
    longer, shorter = sorted((one, other), key=lambda chain: -len(chain.layers))
    return longer.added(shorter.written_out)


def _convolved(call: _Call, chain: _Chain, weight: Tensor, bias: Tensor | None, *settings: Any) -> _Chain:
    *sizes, transposed, output_padding, groups = settings
    sizes.append(output_padding)
    require(groups == 1 and call.source.dim() in (3, 4))
    if call.source.dim() == 3:  # images of one row
        weight = weight.unsqueeze(2)
        sizes = [[first, *size] for first, size in zip((1, 0, 1, 0), sizes)]
    images = call.image, _image(call.made[0])
    return chain.convolved(weight, bias, Convolution(transposed, *images, *sizes))


def _batch_normalised(
    call: _Call,
    chain: _Chain,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    var: Tensor | None,
    *settings: Any,
) -> _Chain:
    """By stored moments, which is linear."""
    *training, _, eps = settings
    if any(training) or mean is None or var is None:
        raise Unknown
    scale = (var.detach().double() + eps).rsqrt()
    scale = scale if weight is None else scale * weight.detach().double()
    shift = -mean.detach().double() * scale
    shift = shift if bias is None else shift + bias.detach().double()
    return chain.scaled(scale.float(), shift.float(), call.source.shape[1])


def _group_normalised(call: _Call, chain: _Chain, weight: Tensor | None, bias: Tensor | None, *sizes: Any) -> _Chain:
    *_, groups, eps = sizes
    shape = [-1] + [1] * (call.source.dim() - 2)
    parts = (one if one is None else one.view(shape) for one in (weight, bias))
    return _normalised(call, chain, groups, eps, *parts)


def _layer_normalised(call: _Call, chain: _Chain, sizes: list[int], weight: Any, bias: Any, eps: float) -> _Chain:
    groups = call.source[0].numel() // math.prod(sizes)
    return _normalised(call, chain, groups, eps, weight, bias)


def _normalised(call: _Call, chain: _Chain, groups: int, eps: float, *parts: Tensor | None) -> _Chain:
    """By moments of the units themselves; weight and bias are as wide as a row, or repeated."""
    require(call.source.shape[1] % groups == 0)  # of whole channels
    scale, shift = (
        (torch.tensor(missing) if one is None else one.detach().float()).expand(call.source.shape[1:]).flatten()
        for one, missing in zip(parts, (1.0, 0.0))
    )
    return chain.normalised(call.image, groups, eps, scale, shift)


# The dimension that an operation crops, of a shape, and what it takes along it.
_CROPS: dict[str, Callable[..., tuple[int, list[slice]]]] = {
    "slice": lambda shape, dim=0, *places: (dim, [slice(*places or [None])]),
    "select": lambda shape, dim, place: (dim, [slice(place % shape[dim], place % shape[dim] + 1)]),
    "split": lambda shape, size, dim=0: (dim, [slice(i, i + size) for i in range(0, shape[dim], size)]),
}


def _cropped(call: _Call, chain: _Chain, *places: Any) -> Any:
    shape, dims = call.source.shape, call.source.dim()
    if call.made[0].shape == shape:
        return chain  # [:], which older versions of PyTorch write out
    dim, parts = _CROPS[call.kind](shape, *places)
    dim %= dims
    require(dim > 0)
    axis = 0 if dim == 1 and dims > 2 else dim - dims + 3  # of the image
    return [chain.cropped(call.image, axis, part) for part in parts]


def _interpolated(call: _Call, chain: _Chain, *places: Any) -> _Chain:
    """A linear map without weights, the same for each channel, along each axis by itself."""
    shape = call.source.shape
    require(len(shape) > 2 and len(call.made) == 1)

    def function(one: Tensor) -> Tensor:
        interpolated = call.target(one.reshape(1, 1, *shape[2:]), *places)
        return cast(Tensor, interpolated.reshape(1, 1, -1, interpolated.shape[-1]))

    return chain.interpolated(call.image, function)


def _padded(call: _Call, chain: _Chain, pads: list[int], value: float = 0) -> _Chain:
    require(value == 0 and len(pads) <= 2 * (call.source.dim() - 2))
    return _interpolated(call, chain, pads, value)


def _averaged(call: _Call, chain: _Chain, dims: list[int], keepdim: bool = False) -> _Chain:
    require(all(dim % call.source.dim() > 1 for dim in dims))
    return _interpolated(call, chain, dims, True)


def _enlarged(call: _Call, chain: _Chain, *places: Any) -> _Chain:
    """By nearest neighbours, which are copies where the factors are whole."""
    sizes = zip(_image(call.made[0])[1:], call.image[1:])
    (rows, no_rows), (columns, no_columns) = (divmod(large, small) for large, small in sizes)
    if no_rows == no_columns == 0:
        return chain.enlarge((rows, columns))
    return _interpolated(call, chain, *places)


def _same(call: _Call, chain: _Chain, *_: Any, **__: Any) -> _Chain:
    require(call.made[0].numel() == call.source.numel())
    return chain


# What an operation makes, of a chain and the operation's own arguments.
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "mm": lambda _, chain, weight: chain.linear(weight.t(), None),
    "addmm": lambda _, bias, chain, weight: chain.linear(weight.t(), bias),
    "add": _sum,
    "convolution": _convolved,
    "pixel_shuffle": lambda call, chain, n: chain.followed_by(*shuffling(call.image, n)),
    "constant_pad_nd": _padded,
    "mean": _averaged,
    "native_group_norm": _group_normalised,
    "native_layer_norm": _layer_normalised,
    **dict.fromkeys(_CROPS, _cropped),
    **dict.fromkeys(("upsample_nearest1d", "upsample_nearest2d"), _enlarged),
    **dict.fromkeys("view _unsafe_view reshape detach clone alias squeeze unsqueeze expand".split(), _same),
    # By the names that versions of PyTorch trace them under.
    **dict.fromkeys(
        "_native_batch_norm_legit_no_training native_batch_norm cudnn_batch_norm".split(), _batch_normalised
    ),
    **dict.fromkeys(
        "upsample_bilinear2d upsample_bicubic2d upsample_linear1d _upsample_nearest_exact2d "
        "avg_pool2d avg_pool1d _adaptive_avg_pool2d reflection_pad1d reflection_pad2d "
        "replication_pad1d replication_pad2d".split(),
        _interpolated,
    ),
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
    "leaky_relu": lambda slope=0.01: (
        None if not 0 <= slope <= 1 else "leaky-relu" if slope == 0.01 else f"leaky-relu:{slope!r}"
    ),
    "softplus": lambda beta=1, threshold=20: "softplus" if (beta, threshold) == (1, 20) else None,
}
