"""Functions of NumPy and JAX, whose gradient autograd does not compute, or computes once only."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager as ContextManager
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from crais.captured import Function, packages_of
from crais.errors import UsageError

Array: TypeAlias = "np.ndarray[Any, Any]"

_OF_JAX = {"jax", "jaxlib", "numpyro"}
TRACING = threading.RLock()  # NumPyro and Pyro have one stack of handlers for all threads, odeint has one default
_ROWS = 16, 256  # of calls of JAX, which compiles for each number; a solver waits for the slowest row of a call
_MOST_STEPS = 1000  # of JAX's odeint between two times; SciPy's takes 500
_BOUNDED = f"odeint takes at most {_MOST_STEPS:,} steps between two times, unless its call says another mxstep"
_PATIENCE = 60.0  # seconds
_ENDLESS = "a call takes over a minute: a solver may never end far out; bound its steps, as odeint(..., mxstep=1000)"
_STEP = {torch.float64: 1e-5, torch.float32: 1e-2}  # of differences of gradients


class _Known(torch.autograd.Function):
    """A value whose gradients come with it. Second derivatives are NaN: bases take differences of gradients."""

    @staticmethod
    def forward(ctx: Any, value_and_grads: Callable[..., Any], *inputs: Tensor) -> Tensor:
        value, grads = value_and_grads(*(one.detach() for one in inputs))
        ctx.save_for_backward(*inputs, *(grad.to(one) for grad, one in zip(grads, inputs)))
        values: Tensor = value.to(inputs[0])
        return values

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        count = len(ctx.saved_tensors) // 2
        inputs, grads = ctx.saved_tensors[:count], ctx.saved_tensors[count:]

        def times(grad: Tensor) -> Tensor:
            return slope.reshape(slope.shape + (1,) * (grad.dim() - slope.dim())) * grad

        products = [times(grad) for grad in grads]
        if torch.is_grad_enabled():  # somebody wants second derivatives
            nobody_knows = lambda grad, z: (grad.clone(), [torch.full_like(grad, torch.nan)] * 2)
            products = [_Known.apply(nobody_knows, *pair) for pair in zip(products, inputs)]
        return None, *products


def known_gradient(value_and_grads: Callable[..., tuple[Tensor, list[Tensor]]]) -> Function:
    """A function of theta, a tensor or a dict of them, from one that returns its gradients too.

    value_and_grads takes the tensors of theta [B, *shape], detached, and returns values [B] and a gradient for each.
    """

    def function(theta: Any) -> Tensor:
        inputs = tuple(theta.values()) if isinstance(theta, dict) else (theta,)
        late = threading.Timer(_PATIENCE, warnings.warn, [_ENDLESS])  # nothing can interrupt code of JAX
        late.daemon = True
        late.start()
        try:
            values: Tensor = _Known.apply(value_and_grads, *inputs)
        finally:
            late.cancel()
        return values

    return function


def of_numpy(value_and_grad: Callable[[Any], Any], rows: Array) -> Function:
    """A PyTorch function from one of NumPy: z [B, D] -> values [B] and gradients [B, D].

    Or one of a row, z [D] -> a value and its gradient [D]: it is then called row by row. Which of
    the two is seen at `rows` [B, D]. Raises UsageError where it is neither.
    """
    count, dim = rows.shape
    pair = None
    with contextlib.suppress(Exception):  # of a function of one row
        pair = _pair(value_and_grad(rows.copy()))
    if pair is not None and pair[0].shape == (count,) and pair[1].shape == (count, dim):
        return _of_arrays(lambda z: _pair(value_and_grad(z)))
    value, grad = _pair(value_and_grad(rows[0].copy()))
    if value.size != 1 or grad.shape != (dim,):
        raise UsageError(
            f"value_and_grad: of z [B, {dim}] values [B] and gradients [B, {dim}] are wanted, or of z [{dim}] a number "
            f"and [{dim}]; of the latter it returns {list(value.shape)} and {list(grad.shape)}: does dim fit?"
        )
    return of_rows(value_and_grad)


def of_rows(value_and_grad: Callable[[Any], Any]) -> Function:
    """A PyTorch function of z [B, D] that calls one of NumPy for each row [D]."""

    def row_by_row(z: Array) -> tuple[Array, Array]:
        values, grads = np.empty(len(z)), np.empty(z.shape)
        for i, row in enumerate(z):
            value, grads[i] = value_and_grad(row)
            values[i] = np.asarray(value).item()
        return values, grads

    return _of_arrays(row_by_row)


def _of_arrays(function: Callable[[Array], tuple[Array, Array]]) -> Function:
    def value_and_grads(z: Tensor) -> tuple[Tensor, list[Tensor]]:
        value, grad = function(np.array(z.cpu().numpy(), dtype=float))  # its own, to write into
        return torch.as_tensor(value), [torch.as_tensor(grad)]

    return known_gradient(value_and_grads)


def _pair(returned: Any) -> tuple[Array, Array]:
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        raise UsageError(f"value_and_grad returns a {type(returned).__name__}: return (values, gradients)")
    return np.asarray(returned[0], float), np.asarray(returned[1], float)


def notes_of(function: Any) -> list[str]:
    """Says that `bounded_solvers` may bound what a function calls."""
    return [_BOUNDED] if packages_of(function) & _OF_JAX and "jax.experimental.ode" in sys.modules else []


@contextlib.contextmanager
def bounded_solvers() -> Iterator[None]:
    """Traced within it, calls of JAX's odeint without `mxstep` are bounded: far out a stiff one never ends."""
    ode: Any = sys.modules.get("jax.experimental.ode")
    with TRACING, patch.dict(ode.odeint.__kwdefaults__ if ode else {}, mxstep=_MOST_STEPS):
        yield


def of_jax(function: Any, example: Callable[[], Any]) -> Function | None:
    """A PyTorch function from one of JAX, of a row or of rows; None if it is not of JAX.

    `example` gives theta of one row. Arrays cross by DLPack. JAX computes in float64 meanwhile, whatever jax_enable_x64
    is outside.
    """
    packages = packages_of(function)
    if not packages & _OF_JAX or "torch" in packages:
        return None
    if type(function).__name__ == "Compiled":
        raise UsageError("the JAX function is compiled for one shape: give what jax.jit returns")
    jax: Any = importlib.import_module("jax")
    theta = example()
    names = list(theta) if isinstance(theta, Mapping) else None

    def shaped(*rows: int) -> Any:
        parts = [theta] if names is None else list(theta.values())
        return tree([jax.ShapeDtypeStruct((*rows, *part.shape[1:]), "float64") for part in parts])

    def tree(leaves: Any) -> Any:
        return leaves[0] if names is None else dict(zip(names, leaves))

    failure: Exception | None = None
    for rows, wanted in (((), ()), ((7,), (7,))):
        try:
            with jax.enable_x64(True), bounded_solvers():
                shape = jax.eval_shape(function, shaped(*rows)).shape
        except Exception as error:  # of a function that was made for the other
            failure = failure or error
            continue
        if shape == wanted:
            return jax_rows(lambda *leaves: function(tree(leaves)), is_of_row=not rows)
    raise UsageError(
        "the JAX function takes neither a row nor rows, to a number each: was it made for one shape, "
        f"and does dim fit? ({str(failure).splitlines()[0] if failure else 'another shape'})"
    ) from failure


def jax_rows(function: Function, is_of_row: bool) -> Function:
    """A PyTorch function of rows from one of JAX, of a row or of rows."""
    jax: Any = importlib.import_module("jax")
    of_row = function if is_of_row else lambda *row: function(*(part[None] for part in row))[0]

    @functools.cache
    def compiled(*shapes: Any) -> Any:
        grads_and_value = lambda row: jax.value_and_grad(of_row, tuple(range(len(row))))(*row)[::-1]
        with bounded_solvers():
            lowered = jax.jit(lambda *leaves: jax.vmap(grads_and_value)(leaves)).lower(*shapes)
            if "@lapack" in lowered.as_text():  # given many matrices, its threads may wait for each other for ever
                lowered = jax.jit(lambda *leaves: jax.lax.map(grads_and_value, leaves)).lower(*shapes)
            return lowered.compile()

    def of_part(size: int, *inputs: Tensor) -> tuple[Tensor, ...]:
        rows = torch.arange(size).clamp_max(len(inputs[0]) - 1)
        with jax.enable_x64(True):
            leaves = [jax.dlpack.from_dlpack(one.double()[rows]) for one in inputs]
            grads, values = compiled(*map(jax.typeof, leaves))(*leaves)
            return tuple(torch.from_dlpack(one)[: len(inputs[0])] for one in (values, *grads))

    def value_and_grads(*inputs: Tensor) -> tuple[Tensor, list[Tensor]]:
        size = _ROWS[len(inputs[0]) > 4 * _ROWS[0]]
        parts = zip(*(one.split(size) for one in inputs))
        value, *grads = map(torch.cat, zip(*(of_part(size, *part) for part in parts)))
        return value, grads

    return known_gradient(value_and_grads)


def once(function: Function, z: Tensor) -> Function | None:
    """A density whose second derivatives are NaN, so that bases take differences of gradients, where
    autograd's are missing, or are not these; None where they are, or the function fails.

    An autograd.Function with a gradient of its own may have none, and may not say so. Looked at
    along one direction, at z [B, D]; cost: five evaluations with gradients of B rows each.
    """

    def value_and_grads(z: Tensor) -> tuple[Tensor, list[Tensor]]:
        value, grad = with_gradient(function, z)
        return value, [grad]

    try:
        return None if _has_second_derivatives(function, z) else known_gradient(value_and_grads)
    except Exception:  # the run's to say
        return None


def _has_second_derivatives(function: Function, z: Tensor) -> bool:
    direction = torch.nn.functional.normalize(torch.linspace(1, 2, z.shape[1]).to(z), dim=0)
    step = _STEP[z.dtype]
    up, down = (with_gradient(function, z + sign * step * direction)[1] for sign in (1, -1))
    by_differences = (up - down) / (2 * step)
    with torch.enable_grad():
        leaf = z.detach().requires_grad_(True)
        (grad,) = torch.autograd.grad(function(leaf).sum(), leaf, create_graph=True)
        if grad.requires_grad:
            try:
                (by_autograd,) = torch.autograd.grad((grad @ direction).sum(), leaf)
            except RuntimeError:
                return False
        else:
            by_autograd = torch.zeros_like(z)
    finite = (by_autograd.isfinite() & by_differences.isfinite()).all(1)
    apart = (by_autograd - by_differences).norm(dim=1)
    noise = 30 * torch.finfo(z.dtype).eps / step * (1 + grad.detach().norm(dim=1))
    wrong = (apart > 0.1 * by_differences.norm(dim=1) + noise) & finite
    return 2 * int(wrong.sum()) <= int(finite.sum())


def with_gradient(function: Function, z: Tensor, backward: ContextManager[Any] | None = None) -> tuple[Tensor, Tensor]:
    """A function's values [B] at z [B, D], and, within `backward`, their gradients [B, D]."""
    with torch.enable_grad():
        z = z.detach().requires_grad_(True)
        value = function(z)
        total = value.sum()
        with backward or contextlib.nullcontext():
            (grad,) = torch.autograd.grad(total, z)
    return value.detach(), grad
