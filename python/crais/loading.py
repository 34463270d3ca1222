"""`crais.load`: a model's file from the Hugging Face Hub or from a folder of the same layout."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crais.errors import NoInputError, UsageError, first_line

_HUB = "hf://"
_NAME = re.compile(r"hf://(?P<repository>[^/@]+/[^/@]+)(?:/(?P<file>.+))?")
# What a repository without a named file is searched for. The second is code.
_FILES = ("model.safetensors", "model.pt2")
# What errors of huggingface_hub mean.
_ANSWERS = {
    "GatedRepoError": "the repository is gated: ask for access on its page, then `hf auth login`",
    "RepositoryNotFoundError": "no such repository, or it is private: `hf auth login`",
    "RevisionNotFoundError": "the repository has no revision {revision}",
}


def load(
    source: str | os.PathLike[str], *, revision: str | None = None, trust_code: bool = False
) -> Path:
    """Finds a model's file on the Hugging Face Hub, or in a folder, for `evaluate` and `certify`.

    >>> model = crais.load("hf://org/vae", revision="v1.0")
    >>> crais.evaluate(model, images)
    >>> crais.load("hf://org/vae/decoders/small.safetensors")          # this file
    >>> crais.load("hf://org/vae/vae.pt2", trust_code=True)            # a model of crais.export

    source       "hf://ORG/MODEL" or "hf://ORG/MODEL/FILE", which need huggingface_hub; or the path
                 of a folder or a file. Without a file: model.safetensors, else model.pt2
    revision     a branch, tag or commit of the repository; its main branch if left out
    trust_code   take files that may be code: all but .safetensors. `evaluate` runs the code of a
                 .pt2 and of TorchScript (.pt, .pth), and refuses code under any other name

    The file is a checkpoint of train-vae, a model of crais.export, or a decoder in TorchScript. For
    other models, build the module with its own library and give it to `evaluate`.

    Downloads go to huggingface_hub's cache; HF_HUB_OFFLINE=1 uses the cache alone. No code of the
    file runs here. Raises UsageError for a name of another form and for a file that needs trust,
    NoInputError for a repository, revision or file that is missing, ImportError without
    huggingface_hub. Returns the file's path. Cost: no evaluation.
    """
    name = os.fspath(source)
    get, file = _on_hub(name, revision) if name.startswith(_HUB) else _in_folder(name, revision)
    for candidate in _FILES if file is None else (file,):
        path = get(candidate)
        if path is None:
            continue
        if not trust_code and not candidate.endswith(".safetensors"):
            raise UsageError(
                f"{name}: {os.path.basename(path)} may be code, which evaluate runs: "
                "trust_code=True takes it; a .safetensors file is never code"
            )
        return Path(path)
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
        except errors.EntryNotFoundError as error:
            if isinstance(error, errors.LocalEntryNotFoundError):
                _check_cached(hub.constants.HF_HUB_CACHE, name, repository, revision)
            return None
        except OSError as error:
            answer = _ANSWERS.get(type(error).__name__)
            said = answer.format(revision=revision) if answer else first_line(error)
            raise NoInputError(f"{name}: {said}") from None

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
