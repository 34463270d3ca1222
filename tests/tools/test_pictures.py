"""docs/results/pictures.py: each picture finds its data, and each page's pictures are drawn by it."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("matplotlib")
RESULTS = Path(__file__).parents[2] / "docs/results"


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", RESULTS / "pictures.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["pictures"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def test_every_picture_has_data_and_a_file(pictures: ModuleType) -> None:
    for picture in pictures.PICTURES:
        records = [r for r in pictures.read(picture.table) if picture.only in ("", r.get("rule"))]
        name = picture.series.format(**records[0])
        own = [r for r in records if picture.series.format(**r) == name]
        x, y, errors = pictures.points(picture, own)
        assert len(x) == len(y) > 0
        assert len(errors) in (0, len(x))
        assert (RESULTS / f"{picture.file or picture.table}.png").exists()


def test_cells_begin_with_numbers(pictures: ModuleType) -> None:
    assert pictures.number("-807.18 (M = 204)") == -807.18
    assert pictures.number("1.4e+244") == 1.4e244
    assert pictures.number("-") != pictures.number("-")
