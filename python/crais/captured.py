"""What functions hold and take: the modules and tensors of a model, where they are, latents of any shape."""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import inspect
import math
import operator
import tokenize
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor

from crais.errors import UsageError

# `packages_of` finds the first ones by their names in a function, too, and looks into none of them.
_PACKAGES = {"jax", "numpyro", "pyro"}
_LIBRARIES = {*_PACKAGES, "jaxlib", "numpy", "scipy", "torch"}

Function: TypeAlias = Callable[..., Any]
Latent: TypeAlias = int | Sequence[int]
_MOST_NUMBERS = 1 << 24  # of a latent, or a datum


def bare(function: Any) -> Any:
    """Without DataParallel or torch.compile around it."""
    for name in ("_orig_mod", "_torchdynamo_orig_callable"):
        function = getattr(function, name, function)
    is_parallel = isinstance(function, torch.nn.DataParallel)
    return bare(function.module) if is_parallel else function


def _reached(parts: Iterable[Any], held: Callable[[Any], Iterable[Any]]) -> list[Any]:
    """The parts, what each one holds, what that holds, and so on, each once."""
    reached: dict[int, Any] = {}
    waiting = list(parts)
    while waiting:
        part = waiting.pop()
        if part is not None and id(part) not in reached:
            reached[id(part)] = part
            waiting += held(part)
    return list(reached.values())


def _variables(function: Any) -> list[Any]:
    """In closures, and global."""
    reached = inspect.getclosurevars(function)
    return [*reached.nonlocals.values(), *reached.globals.values()]


def captured(parts: Iterable[Any]) -> list[Any]:
    """The modules and tensors that functions reach: their own, in closures, and global."""

    def held(part: Any) -> Iterable[Any]:
        if isinstance(part, functools.partial):
            return [part.func, *part.args, *part.keywords.values()]
        if inspect.ismethod(part):
            owner = part.__self__
            is_module = isinstance(owner, torch.nn.Module)
            return [owner] if is_module else list(getattr(owner, "__dict__", {}).values())
        return _variables(part) if inspect.isfunction(part) else []

    return [one for one in _reached(parts, held) if isinstance(one, (torch.nn.Module, Tensor))]


def required_arguments(function: Any) -> list[str] | None:
    """Names of those that must be given by place; None for a function that does not say."""
    try:
        parameters = inspect.signature(getattr(function, "forward", function)).parameters.values()
    except (TypeError, ValueError):
        return None
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in by_place and p.default is p.empty]


def packages_of(target: Any) -> set[str]:
    """What the code of a function refers to, through other functions of its user: {"jax"}."""
    packages: set[str] = set()

    def held(part: Any) -> Iterable[Any]:
        own = part.__name__ if inspect.ismodule(part) else getattr(part, "__module__", None)
        names = {str(name).partition(".")[0] for name in (own, type(part).__module__)}
        packages.update(names)
        if isinstance(part, functools.partial):
            return [part.func]
        if inspect.ismethod(part):
            return [part.__func__]
        if hasattr(part, "__wrapped__"):  # by jax.jit, say
            return [part.__wrapped__]
        if hasattr(part, "fn") and "handlers" in type(part).__module__:  # numpyro.handlers.seed
            return [part.fn]
        call = inspect.getattr_static(type(part), "forward", inspect.getattr_static(type(part), "__call__", None))
        if inspect.isfunction(call):
            return [call]
        if not inspect.isfunction(part) or names & _LIBRARIES:
            return []
        packages.update({name.partition(".")[0] for name in part.__code__.co_names} & _PACKAGES)
        return _variables(part)

    _reached([target], held)
    return packages


def modules_of(parts: Iterable[Any]) -> list[torch.nn.Module]:
    return [part for part in captured(parts) if isinstance(part, torch.nn.Module)]


def tensors_of(parts: Iterable[Any]) -> list[Tensor]:
    """All that functions reach, those of modules too."""
    tensors: list[Tensor] = []
    for part in captured(parts):
        is_module = isinstance(part, torch.nn.Module)
        tensors += [*part.parameters(), *part.buffers()] if is_module else [part]
    return tensors


def device_of(*groups: Iterable[Any]) -> torch.device:
    """Where the tensors of the first group are that has any, all on one device; else the CPU."""
    for parts in groups:
        devices = {tensor.device for tensor in tensors_of(parts)}
        if len(devices) > 1:
            names = ", ".join(sorted(map(str, devices)))
            raise UsageError(f"the model is on several devices: {names}")
        if any(device.type == "meta" for device in devices):
            raise UsageError("the model, or its prior, is on the device meta, which has no numbers")
        if devices:
            return devices.pop()
    return torch.device("cpu")


M = TypeVar("M", bound=torch.nn.Module)


def on_device(module: M | None, device: torch.device) -> M | None:
    """The module if all its tensors are there, else a copy that is."""
    if module is None or not tensors_of([module]) or device_of([module]) == device:
        return module
    return copy.deepcopy(module).to(device)


def other_dtype(parts: Iterable[Any], dtype: torch.dtype) -> str | None:
    """The type of a module's parameter that has another one, as "float16"."""
    for module in modules_of(parts):
        for parameter in module.parameters():
            if parameter.is_floating_point() and parameter.dtype != dtype:
                return str(parameter.dtype).removeprefix("torch.")
    return None


def in_float32(part: Any, memo: dict[int, Any]) -> Any:
    """A float32 copy of a module, or the method of one; `memo` is shared by the parts of a model.

    Raises UsageError for another function of modules that have another type.
    """
    if isinstance(part, torch.nn.Module):
        return copy.deepcopy(part, memo).float()
    if inspect.ismethod(part):
        return types.MethodType(part.__func__, in_float32(part.__self__, memo))
    if callable(part) and other_dtype([part], torch.float32):
        raise UsageError('dtype="float32" copies modules: give one or its method, as model.decode, not a function')
    return part


@contextlib.contextmanager
def in_eval_mode(modules: Iterable[torch.nn.Module]) -> Iterator[None]:
    """Puts modules and all that they hold into eval mode, and each one's own mode back at the end.

    `eval` and `train` are called only where a module is in training mode, since they may derive
    something from parameters.
    """
    modules = [part for part in modules if any(inner.training for inner in part.modules())]
    modes = [(inner, inner.training) for part in modules for inner in part.modules()]
    were_training = [part.training for part in modules]
    for part in modules:
        part.eval()
    try:
        yield
    finally:
        for part, was_training in zip(modules, were_training):
            part.train(was_training)
        for inner, mode in modes:
            inner.training = mode


def check_modes(parts: Iterable[Any]) -> Callable[[], None]:
    """Modules that behave otherwise in training are named here; `check_rows` finds the rest.

    Returns a check that none has gone to training mode since. Both raise UsageError.
    """
    in_eval = []
    for owner in modules_of(parts):
        for name, module in owner.named_modules():
            kind = type(module).__name__
            if module.training and ("BatchNorm" in kind or "Dropout" in kind):
                raise UsageError(f"{name or kind} ({kind}) is in training mode: call .eval()")
            if "BatchNorm" in kind and getattr(module, "running_mean", module) is None:
                raise UsageError(f"{name or kind} ({kind}) has no statistics: track_running_stats=True")
            if not module.training:
                in_eval.append((name or kind, module))

    def check() -> None:
        for name, module in in_eval:
            if module.training:
                raise UsageError(
                    f"{name} went to training mode while it was evaluated: the estimates may mix "
                    "two models; call .train() after the run"
                )

    return check


def digest_of(functions: Iterable[Any], values: Iterable[Tensor]) -> str:
    """What tells functions apart: their sources, where there are files, and values that they have."""
    source, numbers = hashlib.sha256(), hashlib.sha256()
    for function in functions:
        function = inspect.unwrap(function)
        while isinstance(function, functools.partial):
            function = function.func
        if not inspect.isroutine(function):  # of a class, `inspect` parses the whole file
            function = getattr(function, "forward", getattr(type(function), "__call__", None))  # noqa: B004
        with contextlib.suppress(OSError, TypeError, SyntaxError, tokenize.TokenError):  # a file may have changed
            source.update(inspect.getsource(function).encode())
    for value in values:
        numbers.update(value.detach().cpu().contiguous().numpy().tobytes())
    return f"source {source.hexdigest()[:16]}, values {numbers.hexdigest()[:16]}"


def sizes_of(latent: Any, name: str = "latent") -> tuple[int, ...]:
    """The shape of one z, or of one x: (D,), or (C, H, W). Raises UsageError for what is none."""
    is_number = hasattr(latent, "__index__") and not getattr(latent, "shape", ())  # arrays have it
    try:
        sizes = tuple(map(operator.index, (latent,) if is_number else latent))
    except TypeError:
        sizes = ()
    if not sizes or min(sizes) < 1 or math.prod(sizes) > _MOST_NUMBERS:
        raise UsageError(f"{name} is D or a shape as (4, 8, 8), of 1 to {_MOST_NUMBERS:,} numbers, not {latent!r}")
    return sizes


def shaped(function: Function, sizes: tuple[int, ...]) -> Function:
    """A function of rows z [B, D], as crais has them, in place of one of z [B, *sizes], as of maps."""
    if len(sizes) == 1:
        return function
    return lambda z, *others: function(z.reshape(-1, *sizes), *others)
