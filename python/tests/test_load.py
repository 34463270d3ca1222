"""`crais.load` finds files in the Hub's cache, and says in one line what is wrong."""

import json
import sys

import pytest
import torch

import crais
from crais import safetensors

CHEAP = {"chains": 4, "steps": 8, "progress": False, "base": "prior"}
COMMIT, OTHER = "1" * 40, "2" * 40
# Of a checkpoint of train-vae with the tensors of `mlp`.
DESCRIBED = {
    "format_version": 1, "prior": "standard-normal", "likelihood": "bernoulli",
    "architecture": {"image_rows": 6, "image_cols": 6, "latent": 4, "hidden": [16],
                     "activation": "tanh"},
    "binarisation": "none", "objective": "elbo", "data": "", "data_md5": "", "seed": 0, "epochs": 1,
    "validation_elbo": 0.0, "libtorch_version": "",
}  # fmt: skip


def weights(model) -> bytes:
    return safetensors.dumps(model.state_dict(), {"crais": json.dumps(DESCRIBED)})


def torchscript(model, file) -> bytes:
    torch.jit.trace(model.decoder, torch.zeros(2, 4)).save(file)
    return file.read_bytes()


def snapshot(folder, commit: str, files: dict[str, bytes], *refs: str) -> None:
    """Writes files as huggingface_hub lays them out: blobs, links from snapshots, refs."""
    for name, content in files.items():
        blob = folder / "blobs" / f"{commit[:8]}-{name.replace('/', '-')}"
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        link = folder / "snapshots" / commit / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blob)
    for ref in refs:
        (folder / "refs").mkdir(exist_ok=True)
        (folder / "refs" / ref).write_text(commit)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """The folder of a repository org/vae in a cache of the Hub, with no network."""
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub" / "models--org--vae"


def error_of(kind, *arguments, **options) -> str:
    with pytest.raises(kind) as error:
        crais.load(*arguments, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_evaluate_names_the_call_that_a_model_of_the_hub_needs(compiled, images):
    with pytest.raises(crais.UsageError) as error:
        crais.evaluate("hf://org/vae", images)
    assert str(error.value) == "hf://org/vae is on the Hub: give crais.load('hf://org/vae') in its place"


def test_a_model_of_the_hub_is_evaluated(compiled, cache, mlp, images):
    snapshot(cache, COMMIT, {"model.safetensors": weights(mlp)}, "main")
    model = crais.load("hf://org/vae")
    assert model == cache / "snapshots" / COMMIT / "model.safetensors"
    r = crais.evaluate(model, images, **CHEAP)
    wanted = crais.evaluate(mlp, images, likelihood=crais.Bernoulli(), **CHEAP)
    assert r.mean == pytest.approx(wanted.mean, abs=1e-4)
    c = crais.certify(model, num_images=10, **(CHEAP | {"chains": 2}))
    assert c.lower <= c.upper


def test_a_revision_is_a_tag_or_a_commit(cache, mlp):
    snapshot(cache, COMMIT, {"model.safetensors": weights(mlp)}, "main")
    snapshot(cache, OTHER, {"model.safetensors": weights(mlp)}, "v2")
    for revision, commit in (("v2", OTHER), (OTHER, OTHER), (None, COMMIT), ("main", COMMIT)):
        model = crais.load("hf://org/vae", revision=revision)
        assert model == cache / "snapshots" / commit / "model.safetensors"
    named = crais.load("hf://org/vae/model.safetensors", revision="v2")
    assert named == cache / "snapshots" / OTHER / "model.safetensors"
    assert error_of(crais.NoInputError, "hf://org/vae", revision="v3") == (
        f"hf://org/vae: no model.safetensors or model.pt2 at revision v3 in the cache {cache.parent}, "
        "and the Hub is out of reach; name a file, as hf://org/vae/FILE"
    )


def test_what_is_not_there(cache, mlp):
    snapshot(cache, COMMIT, {"weights.safetensors": weights(mlp)}, "main")
    assert error_of(crais.NoInputError, "hf://org/vae/a.safetensors", revision="main") == (
        f"hf://org/vae/a.safetensors: no a.safetensors at revision main in the cache {cache.parent}, "
        "and the Hub is out of reach"
    )


@pytest.mark.parametrize("name", ["hf://vae", "hf://", "hf://org/", "hf://org/vae@v2", "vae.pt2"])
def test_names_of_another_form(cache, name):
    message = error_of(crais.UsageError, name)
    assert message == f"{name}: hf://ORG/MODEL or hf://ORG/MODEL/FILE is expected"


def test_code_is_refused_unless_it_is_trusted(cache):
    names = ("model.pt2", "w.pt", "w.pth", "w.bin", "w.SAFETENSORS")
    snapshot(cache, COMMIT, {name: b"PK" for name in names}, "main")
    for name in names:
        source = "hf://org/vae" if name == "model.pt2" else f"hf://org/vae/{name}"
        assert error_of(crais.UsageError, source) == (
            f"{source}: {name} may be code, which evaluate runs: trust_code=True takes it; "
            "a .safetensors file is never code"
        )
        assert crais.load(source, trust_code=True).name == name


def test_code_in_a_file_that_says_it_is_none_does_not_run(compiled, cache, tmp_path, mlp, images):
    code = torchscript(mlp, tmp_path / "trusted.pt")
    options = {"likelihood": "bernoulli", "latent": 4, **CHEAP}
    snapshot(cache, COMMIT, {"x.safetensors": code, "x.pt": code}, "main")
    (tmp_path / "x.safetensors").write_bytes(code)
    for model in (crais.load("hf://org/vae/x.safetensors", trust_code=True), str(tmp_path / "x.safetensors")):
        with pytest.raises(crais.DataError, match="x.safetensors: holds TorchScript, which is code"):
            crais.evaluate(model, images, **options)
    assert len(crais.evaluate(tmp_path / "trusted.pt", images, **options)) == len(images)
    trusted = crais.load("hf://org/vae/x.pt", trust_code=True)
    assert len(crais.evaluate(trusted, images, **options)) == len(images)


def test_without_huggingface_hub(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    message = error_of(ImportError, "hf://org/vae")
    assert message == "hf://org/vae needs huggingface_hub: pip install huggingface_hub"


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("RepositoryNotFoundError", "no such repository, or it is private: `hf auth login`"),
        ("GatedRepoError", "the repository is gated: ask for access on its page, then `hf auth login`"),
        ("RevisionNotFoundError", "the repository has no revision v9"),
        ("OSError", "the first line"),
    ],
)
def test_what_the_hub_answers(cache, monkeypatch, kind, message):
    def refuse(*_, **__):
        raise type(kind, (OSError,), {})("the first line\nof two")

    errors = pytest.importorskip("huggingface_hub.errors")
    assert kind == "OSError" or issubclass(getattr(errors, kind), OSError)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", refuse)
    assert error_of(crais.NoInputError, "hf://org/vae", revision="v9") == f"hf://org/vae: {message}"


def test_a_repository_without_a_model(cache, monkeypatch):
    class Missing(pytest.importorskip("huggingface_hub.errors").EntryNotFoundError):
        def __init__(self):
            pass

    def refuse(*_, **__):
        raise Missing

    monkeypatch.setattr("huggingface_hub.hf_hub_download", refuse)
    assert error_of(crais.NoInputError, "hf://org/vae", revision="v9") == (
        "hf://org/vae: no model.safetensors or model.pt2 at revision v9; name a file, as hf://org/vae/FILE"
    )
