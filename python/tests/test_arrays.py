"""What `crais.evaluate` makes of arrays that nobody foresaw: what they hold, or a UsageError.

CRAIS_FUZZ=100000 tries so many.
"""

import os
import random

import numpy as np
import pytest
import torch

import crais
from crais.images import read

COUNT = int(os.environ.get("CRAIS_FUZZ", "3000"))
NUMBERS = ["u1", "i1", "i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "?"]
OTHERS = ["c8", "c16", "O", "U3", "S3", "M8[s]", "m8[s]", "V4", "g", "i4,f4"]


def array_of(chance):
    """An array of a random type, shape and order, and the numbers it holds."""
    kind = chance.choice(NUMBERS if chance.random() < 0.8 else OTHERS)
    if "," not in kind and kind[0] in "iufcMmUO" and kind != "O":
        kind = chance.choice("<>=") + kind
    shape = [chance.randrange(0, 4) for _ in range(chance.randrange(0, 5))]
    array = np.zeros(shape, kind)
    if array.dtype.kind in "buif":
        filled = np.random.default_rng(chance.randrange(1 << 30)).integers(0, 2, shape)
        array = filled.astype(kind)
    for _ in range(chance.randrange(3)):
        array = rearranged(chance, array)
    return array


def rearranged(chance, array):
    way = chance.randrange(7)
    if way == 0 and array.ndim:
        return np.flip(array, chance.randrange(array.ndim))
    if way == 1:
        return array.T
    if way == 2 and array.ndim:
        return np.repeat(array, 2, 0)[:: chance.choice([2, -2])]
    if way == 3:
        return np.broadcast_to(array, (chance.randrange(3), *array.shape))
    if way == 4:
        array = array.copy()
        array.flags.writeable = False
        return array
    if way == 5 and array.ndim and array.dtype.kind in "buif":
        mask = np.zeros(array.shape, bool)
        mask[..., :1] = chance.random() < 0.5
        return np.ma.masked_array(array, mask)
    if way == 6 and array.dtype.kind in "buif" and array.dtype.itemsize > 1:
        whole = np.zeros(array.size * array.itemsize + 1, "u1")  # at an odd address
        view = whole[1:].view(array.dtype).reshape(array.shape)
        view[...] = array
        return view
    return array


def wrapped(chance, array):
    way = chance.randrange(6)
    if way == 0 and array.ndim and type(array) is np.ndarray:
        return torch.utils.data.TensorDataset(torch.zeros(2, 3)) if array.size == 0 else array
    if way == 1:
        return list(array) if array.ndim else array
    return array


def test_arrays_of_any_kind():
    chance = random.Random(5)
    taken = refused = 0
    for trial in range(COUNT):
        array = array_of(chance)
        try:
            found = read(wrapped(chance, array))[0]
        except crais.UsageError as error:
            refused += 1
            assert "\n" not in str(error) and str(error).startswith(("images", "an item of images")), trial
            continue
        taken += 1
        if not array.size:
            continue
        wanted = np.asarray(array.tolist() if array.ndim else array, "f8")
        assert found.layout == torch.strided and found.device.type == "cpu" and found.dim() > 1
        assert np.array_equal(found.double().numpy().ravel(), wanted.ravel()), trial
        assert not np.ma.is_masked(array), trial
    assert min(taken, refused) > COUNT / 10


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16,
                                   torch.bfloat16, torch.float32, torch.float64])  # fmt: skip
def test_tensors_of_any_layout(dtype):
    plain = (torch.rand(4, 3, 2) < 0.5).to(dtype)
    for same in (plain.mT.contiguous().mT, plain.repeat_interleave(2, 0)[::2], plain.unsqueeze(0)[0]):
        found = read(same)[0]
        assert torch.equal(found.double(), plain.double())
    for other in (plain.to_sparse(), torch.view_as_complex(torch.zeros(4, 3, 2))):
        with pytest.raises(crais.UsageError):
            read(other)[0]
