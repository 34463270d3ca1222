"""`crais.load`: a model's file from the Hugging Face Hub."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from crais.errors import NoInputError, UsageError, first_line

_NAME = re.compile(r"hf://(?P<repository>[^/@]+/[^/@]+)(?:/(?P<file>.+))?")
# What a repository without a named file is searched for. The second is code.
_FILES = ("model.safetensors", "model.pt2")
# What errors of huggingface_hub mean.
_ANSWERS = {
    "GatedRepoError": "the repository is gated: ask for access on its page, then `hf auth login`",
    "RepositoryNotFoundError": "no such repository, or it is private: `hf auth login`",
    "RevisionNotFoundError": "the repository has no revision {revision}",
}


def load(source: str, *, revision: str | None = None, trust_code: bool = False) -> Path:
    """Finds a model's file on the Hugging Face Hub, for `evaluate` and `certify`.

    >>> model = crais.load("hf://org/vae", revision="v1.0")
    >>> crais.evaluate(model, images)
    >>> crais.load("hf://org/vae/decoders/small.safetensors")          # this file
    >>> crais.load("hf://org/vae/vae.pt2", trust_code=True)            # a model of crais.export

    source       "hf://ORG/MODEL/FILE", or "hf://ORG/MODEL" for its model.safetensors, else model.pt2
    revision     a branch, tag or commit of the repository; its main branch if left out
    trust_code   take files that may be code: all but .safetensors. `evaluate` runs the code of a
                 .pt2 and of TorchScript (.pt, .pth), and refuses code under any other name

    The file is a checkpoint of train-vae, a model of crais.export, or a decoder in TorchScript. For
    other models, build the module with its own library and give it to `evaluate`.

    Downloads go to huggingface_hub's cache; HF_HUB_OFFLINE=1 uses the cache alone. No code of the file runs here.
    Raises UsageError for a name of another form and for a file that needs trust, NoInputError for a repository,
    revision or file that is missing, ImportError without huggingface_hub. Returns the file's path. Cost: no evaluation.
    """
    parts = _NAME.fullmatch(source) if isinstance(source, str) else None
    if parts is None:
        raise UsageError(f"{source}: hf://ORG/MODEL or hf://ORG/MODEL/FILE is expected")
    try:
        hub: Any = importlib.import_module("huggingface_hub")
        errors: Any = importlib.import_module("huggingface_hub.errors")
    except ImportError:
        raise ImportError(f"{source} needs huggingface_hub: pip install huggingface_hub") from None
    files, where = [parts["file"]] if parts["file"] else _FILES, ""
    for file in files:
        try:
            path = hub.hf_hub_download(parts["repository"], file, revision=revision)
        except errors.HFValidationError as error:
            raise UsageError(f"{source}: {first_line(error)}") from None
        except errors.LocalEntryNotFoundError:
            where = f" in the cache {hub.constants.HF_HUB_CACHE}, and the Hub is out of reach"
        except errors.EntryNotFoundError:
            continue
        except OSError as error:
            answer = _ANSWERS.get(type(error).__name__)
            said = answer.format(revision=revision) if answer else first_line(error)
            raise NoInputError(f"{source}: {said}") from None
        else:
            if not trust_code and not file.endswith(".safetensors"):
                raise UsageError(
                    f"{source}: {Path(path).name} may be code, which evaluate runs: "
                    "trust_code=True takes it; a .safetensors file is never code"
                )
            return Path(path)
    advice = "" if parts["file"] else f"; name a file, as {source}/FILE"
    at = f" at revision {revision}" if revision else ""
    raise NoInputError(f"{source}: no {' or '.join(files)}{at}{where}{advice}")
