"""Export writes within the limits that the C++ reader holds files to: `crais.export` cannot ask it."""

import re
from pathlib import Path

import pytest

from crais import captured_model, image_layers

READER = Path(__file__).resolve().parents[2] / "models/model_manifest.cpp"

SAME = {
    "kValueTolerance": captured_model.VALUE_TOLERANCE,
    "kGradTolerance": captured_model.GRAD_TOLERANCE,
    "kMostConnections": image_layers.MOST_CONNECTIONS,
    "kMostUnits": image_layers.MOST_UNITS,
}


@pytest.mark.parametrize("name", SAME)
def test_the_reader_has_the_same_limit(name):
    text = READER.read_text(encoding="utf-8")
    written = re.search(rf"\b{name} = (?:int64_t\{{1\}} << (\d+)|([0-9.e+-]+))[,;]", text)
    assert written, f"{READER} has no {name}"
    shift, number = written.groups()
    assert SAME[name] == (2 ** int(shift) if shift else float(number))
