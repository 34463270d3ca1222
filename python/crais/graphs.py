"""What is done to a traced graph of log p(x, z) and its gradient before it is compiled.

Transposed convolutions with few output channels, the last layers of most decoders, are slow in
oneDNN. They are written as convolutions of fewer pixels whose channels are then spread over the
pixels: the same sums in another order. And what no input decides is computed here, once.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, fx

_aten = torch.ops.aten

_FEW = 16  # output channels; with more, transposed convolutions are as fast as others


def quickened(graph: fx.GraphModule) -> fx.GraphModule:
    """The same function, made cheaper."""
    module = copy.deepcopy(graph)
    constants = _Constants(module)
    for node in list(module.graph.nodes):
        if node.target is _aten.convolution.default and node.args[6]:
            _spread(module, node, constants)
    for node in list(module.graph.nodes):
        # Weights in a shorter type: else they would be cast at every call.
        cast = constants.of(node) if node.target is _aten._to_copy.default else None
        if cast is not None:
            with module.graph.inserting_before(node):
                node.replace_all_uses_with(constants.add(_laid_out(cast)))
    module.graph.eliminate_dead_code()
    module.graph.lint()
    module.recompile()
    return module


class _Constants:
    """Tensors that a graph holds, and others that are made of them when it is rewritten."""

    def __init__(self, module: fx.GraphModule) -> None:
        self._module = module
        self._known: dict[fx.Node, Tensor | None] = {}
        self._added = 0

    def of(self, node: Any) -> Tensor | None:
        """The value of a node that no input decides; None for others."""
        if not isinstance(node, fx.Node):
            return None
        if node not in self._known:
            self._known[node] = self._computed(node)
        return self._known[node]

    def _computed(self, node: fx.Node) -> Tensor | None:
        if node.op == "get_attr":
            found: Any = self._module
            for name in str(node.target).split("."):
                found = getattr(found, name)
            return found.detach() if isinstance(found, Tensor) else None
        target: Any = node.target
        if node.op != "call_function" or getattr(target, "namespace", "") != "aten":
            return None
        if torch.Tag.nondeterministic_seeded in target.tags or not node.all_input_nodes:
            return None
        if any(self.of(one) is None for one in node.all_input_nodes):
            return None
        values = fx.map_arg((node.args, node.kwargs), lambda one: self._known[one])
        with torch.no_grad():
            result = target(*values[0], **values[1])
        return result if isinstance(result, Tensor) else None

    def add(self, tensor: Tensor) -> fx.Node:
        """A node for a new tensor, at the graph's insertion point."""
        while hasattr(self._module, name := f"_made_constant{self._added}"):
            self._added += 1
        self._module.register_buffer(name, tensor)
        node = self._module.graph.get_attr(name)
        node.meta["val"] = tensor
        return node


def _call(module: fx.GraphModule, target: Any, *arguments: Any) -> fx.Node:
    node = module.graph.call_function(target, arguments)
    mode = next(one.meta["val"].fake_mode for one in module.graph.nodes if one.op == "placeholder")

    def fake(one: fx.Node) -> Any:
        value = one.meta["val"]
        return mode.from_tensor(value, static_shapes=True) if type(value) is Tensor else value

    with mode, torch.no_grad():
        node.meta["val"] = target(*fx.map_arg(arguments, fake))
    return node


def _spread(module: fx.GraphModule, node: fx.Node, constants: _Constants) -> None:
    """Replaces a transposed convolution of one group by a convolution, if it can."""
    arguments: Any = node.args
    x, weight, bias, stride, padding, dilation, _, _, groups = arguments
    kernel = constants.of(weight)
    sizes = [node.meta["val"].shape[2:], x.meta["val"].shape[2:]]
    if kernel is None or groups != 1 or any(d != 1 for d in dilation) or max(stride) == 1:
        return
    if kernel.shape[1] > _FEW or kernel.dtype != torch.float32:
        return
    if not all(isinstance(size, int) for shape in sizes for size in shape):
        return
    taps = [-(-k // s) for k, s in zip(kernel.shape[2:], stride)]  # that a pixel of a phase has
    pads = [
        _padding(p, s, j, size, out)
        for p, s, j, out, size in zip(padding, stride, taps, *sizes)
    ]
    if any(pad is None for pad in pads):
        return
    phases, channels, dims = math.prod(stride), kernel.shape[1], len(stride)
    with module.graph.inserting_before(node):
        made = _call(
            module, _aten.convolution.default, x, constants.add(_phased(kernel, stride, taps)),
            None, [1] * dims, [pad for pad in pads], [1] * dims, False, [0] * dims, 1,
        )
        firsts = [p - s * (j - 1 - pad) for p, s, j, pad in zip(padding, stride, taps, pads)]
        if phases > 1 and channels < 16 and all(n % s == 0 for n, s in zip(sizes[0], stride)):
            made = _interleaved(module, made, channels, stride, firsts, sizes[0])
        else:
            made = _permuted(module, made, channels, stride, firsts, sizes[0])
        if bias is not None:
            column = _call(module, _aten.view.default, bias, [1, channels, *[1] * dims])
            made = _call(module, _aten.add.Tensor, made, column)
    node.replace_all_uses_with(made)
    module.graph.erase_node(node)


def _permuted(
    module: fx.GraphModule,
    made: fx.Node,
    channels: int,
    stride: list[int],
    firsts: list[int],
    sizes: list[int],
) -> fx.Node:
    """Phases [N, phases * channels, *] as pixels [N, channels, *], from `firsts` on."""
    dims, small = len(stride), made.meta["val"].shape[2:]
    if math.prod(stride) > 1:
        made = _call(module, _aten.view.default, made, [-1, *stride, channels, *small])
        order = [0, 1 + dims]
        for i in range(dims):
            order += [2 + dims + i, 1 + i]
        made = _call(module, _aten.permute.default, made, order)
        wide = [n * s for n, s in zip(small, stride)]
        made = _call(module, _aten.reshape.default, made, [-1, channels, *wide])
    for i, (first, size) in enumerate(zip(firsts, sizes)):
        if first > 0 or made.meta["val"].shape[2 + i] != size:
            made = _call(module, _aten.slice.Tensor, made, 2 + i, first, first + size)
    return made


def _interleaved(
    module: fx.GraphModule,
    made: fx.Node,
    channels: int,
    stride: list[int],
    firsts: list[int],
    sizes: list[int],
) -> fx.Node:
    """The same by concatenations, which the compiler keeps apart from what follows.

    With few channels, what reads the pixels would otherwise gather them one by one.
    """
    parts = [
        _call(module, _aten.slice.Tensor, made, 1, i * channels, (i + 1) * channels)
        for i in range(math.prod(stride))
    ]
    for axis in reversed(range(len(stride))):
        step, dim = stride[axis], 2 + axis
        merged = []
        for group in range(0, len(parts), step):
            turns = []
            for i in range(step):
                first, phase = divmod(firsts[axis] + i, step)
                last = first + sizes[axis] // step
                one = parts[group + phase]
                one = _call(module, _aten.slice.Tensor, one, dim, first, last)
                turns.append(_call(module, _aten.unsqueeze.default, one, dim + 1))
            wide = _call(module, _aten.cat.default, turns, dim + 1)
            shape = list(wide.meta["val"].shape)
            shape[dim : dim + 2] = [shape[dim] * step]
            merged.append(_call(module, _aten.reshape.default, wide, [-1, *shape[1:]]))
        parts = merged
    return parts[0]


def _padding(padding: int, stride: int, taps: int, size: int, out: int) -> int | None:
    """The least that gives all pixels of a transposed convolution along one axis."""
    for pad in range(max(0, taps - 1 - padding // stride), taps):
        first = padding - stride * (taps - 1 - pad)
        if first >= 0 and first + out <= stride * (size + 2 * pad - taps + 1):
            return pad
    return None


def _phased(kernel: Tensor, stride: list[int], taps: list[int]) -> Tensor:
    """[in, out, *k] -> [phases * out, in, *taps]: pixel s q + r is phase r of pixel q."""
    dims = len(stride)
    whole = kernel.new_zeros(*kernel.shape[:2], *(s * j for s, j in zip(stride, taps)))
    whole[(slice(None), slice(None), *(slice(0, k) for k in kernel.shape[2:]))] = kernel
    split = whole.view(*kernel.shape[:2], *(n for j, s in zip(taps, stride) for n in (j, s)))
    split = split.flip([2 + 2 * i for i in range(dims)])
    phases = [3 + 2 * i for i in range(dims)]
    rest = [2 + 2 * i for i in range(dims)]
    return _laid_out(split.permute(*phases, 1, 0, *rest).reshape(-1, kernel.shape[0], *taps))


def _laid_out(weight: Tensor) -> Tensor:
    """As a convolution reads it fastest."""
    if weight.dim() == 4:
        return weight.contiguous(memory_format=torch.channels_last)
    return weight.contiguous()
