"""`crais.load`: a model's file from the Hugging Face Hub or from a folder of the same layout."""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crais.errors import DataError, NoInputError, UsageError, first_line

_HUB = "hf://"
_NAME = re.compile(r"hf://(?P<repository>[^/@]+/[^/@]+)(?:/(?P<file>.+))?")
# What a repository without a named file is searched for. The second is a program.
_FILES = ("model.safetensors", "model.pt2")
# What config.json may say of the file: `evaluate`'s arguments that describe a file's content.
_OPTIONS = ("likelihood", "decoder", "encoder", "activation", "latent", "image_shape")


@dataclass(frozen=True)
class ModelFile(os.PathLike[str]):
    """A model's file, which `evaluate` and `certify` take as their model.

    path      where the file lies on this machine
    options   arguments of `evaluate` that its config.json names, as {"activation": "tanh"};
              arguments of a call win over them
    """

    path: str
    options: dict[str, Any] = field(default_factory=dict)

    def __fspath__(self) -> str:
        return self.path


def load(
    source: str | os.PathLike[str], *, revision: str | None = None, trust_code: bool = False
) -> ModelFile:
    """Finds a model's file on the Hugging Face Hub, or in a folder, for `evaluate` and `certify`.

    >>> model = crais.load("hf://org/vae", revision="v1.0")
    >>> crais.evaluate(model, images)
    >>> crais.load("hf://org/vae/decoders/small.safetensors")          # this file
    >>> crais.load("hf://org/vae/vae.pt2", trust_code=True)            # a model of crais.export

    source       "hf://ORG/MODEL" or "hf://ORG/MODEL/FILE", which need huggingface_hub; or the path
                 of a folder or a file. Without a file: model.safetensors, else model.pt2
    revision     a branch, tag or commit of the repository; its main branch if left out
    trust_code   take files that can run code when they are read: .pt2 and TorchScript are
                 programs, and pickles (.pt, .pth, .bin, .ckpt) can hold one. A safetensors file
                 holds numbers alone, so it needs no trust

    A config.json beside the file may say what the weights mean, in an object named "crais":
    likelihood, decoder, encoder, activation, latent and image_shape, as `evaluate` takes them for
    files. The weights are those of an MLP, as models.md says, or a checkpoint of train-vae. For
    other models, build the module with its own library and give it to `evaluate`.

    Downloads go to huggingface_hub's cache; HF_HUB_OFFLINE=1 uses the cache alone. No code of the
    file runs here. Raises UsageError for a name of another form and for a file that needs trust,
    NoInputError for a repository, revision or file that is missing, DataError for a config.json or
    a safetensors file that is damaged, ImportError without huggingface_hub. Cost: no evaluation.
    """
    name = os.fspath(source)
    get, file = _on_hub(name, revision) if name.startswith(_HUB) else _in_folder(name, revision)
    for candidate in _FILES if file is None else (file,):
        path = get(candidate)
        if path is None:
            continue
        _check_safe(path, name, trust_code)
        config = get(str(Path(candidate).with_name("config.json")))
        return ModelFile(path, {} if config is None else _options_of(config))
    looked_for = file or " or ".join(_FILES)
    advice = "" if file is not None else f"; name a file, as {name}/FILE"
    at = "" if revision is None else f" at revision {revision}"
    raise NoInputError(f"{name}: no {looked_for}{at}{advice}")


_Get = Callable[[str], str | None]  # the local path of a file of the repository, if it has one


def refuse_hub(name: str) -> None:
    """Raises UsageError for a name on the Hub, where a file is due."""
    if name.startswith(_HUB):
        raise UsageError(f"{name} is on the Hub: give crais.load({name!r}) in its place")


def _in_folder(name: str, revision: str | None) -> tuple[_Get, str | None]:
    if revision is not None:
        raise UsageError(f"revision is for {_HUB}ORG/MODEL; {name} is a path")
    if not os.path.exists(name):
        raise NoInputError(f"{name}: no such file or folder; models of the Hub are {_HUB}ORG/MODEL")
    folder, file = (name, None) if os.path.isdir(name) else os.path.split(name)

    def get(relative: str) -> str | None:
        path = os.path.join(folder, relative)
        return path if os.path.isfile(path) else None

    return get, file


def _on_hub(name: str, revision: str | None) -> tuple[_Get, str | None]:
    try:
        hub: Any = importlib.import_module("huggingface_hub")
        constants: Any = importlib.import_module("huggingface_hub.constants")
        errors: Any = importlib.import_module("huggingface_hub.errors")
    except ImportError:
        raise ImportError(f"{name} needs huggingface_hub: pip install huggingface_hub") from None
    parts = _NAME.fullmatch(name)
    if parts is None:
        raise UsageError(f"{name}: {_HUB}ORG/MODEL or {_HUB}ORG/MODEL/FILE is expected")
    repository, file = parts["repository"], parts["file"]

    def get(relative: str) -> str | None:
        try:
            path: str = hub.hf_hub_download(repository, relative, revision=revision)
            return path
        except errors.HFValidationError as error:
            raise UsageError(f"{name}: {first_line(error)}") from None
        except errors.GatedRepoError:
            raise NoInputError(
                f"{name}: the repository is gated: ask for access on its page, then `hf auth login`"
            ) from None
        except errors.RepositoryNotFoundError:
            raise NoInputError(
                f"{name}: no such repository, or it is private: `hf auth login`"
            ) from None
        except errors.RevisionNotFoundError:
            raise NoInputError(f"{name}: the repository has no revision {revision}") from None
        except errors.LocalEntryNotFoundError:
            _check_cached(constants.HF_HUB_CACHE, name, repository, revision)
            return None
        except errors.EntryNotFoundError:
            return None
        except OSError as error:
            raise NoInputError(f"{name}: {first_line(error)}") from None

    return get, file


def _check_cached(cache: str, name: str, repository: str, revision: str | None) -> None:
    """Raises NoInputError where the Hub is out of reach and the cache lacks what is asked for."""
    folder = Path(cache) / f"models--{repository.replace('/', '--')}"
    if not (folder / "snapshots").is_dir():
        raise NoInputError(f"{name}: not in the cache {folder.parent}, and the Hub is out of reach")
    commit = revision or "main"
    if not (folder / "refs" / commit).is_file() and not (folder / "snapshots" / commit).is_dir():
        raise NoInputError(
            f"{name}: the cache has no revision {commit}, and the Hub is out of reach"
        )


def _check_safe(path: str, name: str, trust_code: bool) -> None:
    """Raises an error for a file that could run code where it is read, unless it is trusted.

    crais's reader decides by a file's first bytes, not by its name, and so does this check.
    """
    if trust_code:
        return
    file = os.path.basename(path)
    if not file.endswith(".safetensors"):
        is_program = file.endswith(".pt2")
        danger = "is a program" if is_program else "can hold a program, as every pickle can"
        raise UsageError(
            f"{name}: {file} {danger}: trust_code=True takes it; a .safetensors file is safe"
        )
    with open(path, "rb") as opened:
        start = opened.read(9)
    if start.startswith(b"PK") or start[8:] != b"{":
        raise DataError(f"{name}: {file} is no safetensors file, whatever its name says")


def _options_of(config: str) -> dict[str, Any]:
    """What config.json says under "crais". Raises DataError for what it may not say."""
    try:
        content = json.loads(Path(config).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{config}: {first_line(error)}") from None
    options = content.get("crais", {}) if isinstance(content, dict) else {}
    if not isinstance(options, dict):
        raise DataError(f'{config}: "crais" must be an object of {", ".join(_OPTIONS)}')
    for option, value in options.items():
        if option not in _OPTIONS:
            raise DataError(f'{config}: "crais" has {option!r}; it may have {", ".join(_OPTIONS)}')
        if not isinstance(value, (str, int)) or isinstance(value, bool):
            raise DataError(f'{config}: {option} in "crais" must be a string or a whole number')
    return options
