"""What functions hold: the modules and tensors of a model, and where they are."""

from __future__ import annotations

import copy
import functools
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor

from crais.errors import UsageError

# `packages_of` finds the first ones by their names in a function, too, and looks into none of them.
_PACKAGES = {"jax", "numpyro", "pyro"}
_LIBRARIES = {*_PACKAGES, "jaxlib", "numpy", "scipy", "torch"}

Function: TypeAlias = Callable[..., Any]


def bare(function: Any) -> Any:
    """Without DataParallel or torch.compile around it."""
    for name in ("_orig_mod", "_torchdynamo_orig_callable"):
        function = getattr(function, name, function)
    is_parallel = isinstance(function, torch.nn.DataParallel)
    return bare(function.module) if is_parallel else function


def captured(parts: Iterable[Any]) -> list[Any]:
    """The modules and tensors that functions reach: their own, in closures, and global."""
    found: dict[int, Any] = {}
    waiting = list(parts)
    while waiting:
        part = waiting.pop()
        if id(part) in found or part is None:
            continue
        if isinstance(part, (torch.nn.Module, Tensor)):
            found[id(part)] = part
        elif isinstance(part, functools.partial):
            waiting += [part.func, *part.args, *part.keywords.values()]
        elif inspect.ismethod(part):
            found[id(part)] = part
            owner = part.__self__
            waiting += (
                [owner]
                if isinstance(owner, torch.nn.Module)
                else getattr(owner, "__dict__", {}).values()
            )
        elif inspect.isfunction(part):
            found[id(part)] = part
            reached = inspect.getclosurevars(part)
            waiting += [*reached.nonlocals.values(), *reached.globals.values()]
    return [part for part in found.values() if isinstance(part, (torch.nn.Module, Tensor))]


def required_arguments(function: Any) -> list[str] | None:
    """Names of those that must be given by place; None for a function that does not say."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in by_place and p.default is p.empty]


def packages_of(target: Any) -> set[str]:
    """What the code of a function refers to, through other functions of its user: {"jax"}."""
    found: set[str] = set()
    seen: dict[int, Any] = {}
    waiting = [target]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen[id(part)] = part
        own = part.__name__ if inspect.ismodule(part) else getattr(part, "__module__", None)
        names = {str(name).partition(".")[0] for name in (own, type(part).__module__)}
        found |= names
        if isinstance(part, functools.partial):
            waiting.append(part.func)
        elif inspect.ismethod(part):
            waiting.append(part.__func__)
        elif hasattr(part, "__wrapped__"):  # by jax.jit, say
            waiting.append(part.__wrapped__)
        elif hasattr(part, "fn") and "handlers" in type(part).__module__:  # numpyro.handlers.seed
            waiting.append(part.fn)
        elif inspect.isfunction(part) and not names & _LIBRARIES:
            found |= {name.partition(".")[0] for name in part.__code__.co_names} & _PACKAGES
            reached = inspect.getclosurevars(part)
            waiting += [*reached.nonlocals.values(), *reached.globals.values()]
    return found


def modules_of(parts: Iterable[Any]) -> list[torch.nn.Module]:
    return [part for part in captured(parts) if isinstance(part, torch.nn.Module)]


def device_of(*groups: Iterable[Any]) -> torch.device:
    """Where the tensors of the first group are that has any, all on one device; else the CPU."""
    for parts in groups:
        devices: set[torch.device] = set()
        for part in captured(parts):
            tensors = (
                [*part.parameters(), *part.buffers()]
                if isinstance(part, torch.nn.Module)
                else [part]
            )
            devices |= {tensor.device for tensor in tensors}
        if len(devices) > 1:
            names = ", ".join(sorted(map(str, devices)))
            raise UsageError(f"the model is on several devices: {names}")
        if devices:
            return devices.pop()
    return torch.device("cpu")


M = TypeVar("M", bound=torch.nn.Module)


def on_device(module: M | None, device: torch.device) -> M | None:
    """The module if all its tensors are there, else a copy that is."""
    tensors = [] if module is None else [*module.parameters(), *module.buffers()]
    if module is None or all(tensor.device == device for tensor in tensors):
        return module
    return copy.deepcopy(module).to(device)


def check_float32(parts: Iterable[Any]) -> None:
    """Why a model fails on float32 numbers, where its parameters are others."""
    for module in modules_of(parts):
        for parameter in module.parameters():
            if parameter.is_floating_point() and parameter.dtype != torch.float32:
                raise UsageError(
                    f"the model's parameters are {parameter.dtype}; models are float32: call "
                    '.float(), or give dtype="float32", which evaluates a copy'
                )


def check_types(parts: Iterable[Any], z: Tensor, cause: Exception) -> None:
    """Why a density fails on z, where its parameters are of another type."""
    for module in modules_of(parts):
        for parameter in module.parameters():
            if parameter.is_floating_point() and parameter.dtype != z.dtype:
                kind = str(parameter.dtype).removeprefix("torch.")
                fits = "dtype='float32'" if kind == "float32" else "module.float(), dtype='float32'"
                raise UsageError(
                    f"the module is {kind}, z is {str(z.dtype)[6:]}: {fits}, or module.double()"
                ) from cause


def in_float32(part: Any, memo: dict[int, Any]) -> Any:
    """A copy whose modules and tensors are float32; `memo` is shared by the parts of a model.

    Functions are copied with what they reach: their own, in closures, and global.
    """
    if id(part) in memo:
        return memo[id(part)]
    if isinstance(part, torch.nn.Module):
        return copy.deepcopy(part, memo).float()
    if isinstance(part, Tensor):
        return part.detach().float() if part.is_floating_point() else part
    if isinstance(part, functools.partial):
        arguments = [in_float32(one, memo) for one in part.args]
        keywords = {name: in_float32(one, memo) for name, one in part.keywords.items()}
        return functools.partial(in_float32(part.func, memo), *arguments, **keywords)
    if inspect.ismethod(part):
        return types.MethodType(part.__func__, in_float32(part.__self__, memo))
    if not inspect.isfunction(part):
        return part
    memo[id(part)] = part  # where it reaches itself
    closure = part.__closure__ or ()
    cells = [types.CellType(in_float32(cell.cell_contents, memo)) for cell in closure]
    reached = inspect.getclosurevars(part).globals
    known = part.__globals__ | {name: in_float32(one, memo) for name, one in reached.items()}
    made = types.FunctionType(part.__code__, known, part.__name__, part.__defaults__, tuple(cells))
    made.__kwdefaults__ = part.__kwdefaults__
    memo[id(part)] = made
    return made


def leaves_of(parts: Iterable[Any]) -> list[Tensor]:
    """The leaves that require gradients."""
    tensors: list[Tensor] = []
    for part in captured(parts):
        tensors += part.parameters() if isinstance(part, torch.nn.Module) else [part]
    return [tensor for tensor in tensors if tensor.requires_grad and tensor.is_leaf]


def check_modes(parts: Iterable[Any]) -> None:
    """Modules that behave otherwise in training are named here; `check_rows` finds the rest."""
    for owner in modules_of(parts):
        for name, module in owner.named_modules():
            kind = type(module).__name__
            if module.training and ("BatchNorm" in kind or "Dropout" in kind):
                raise UsageError(f"{name or kind} ({kind}) is in training mode: call .eval()")
