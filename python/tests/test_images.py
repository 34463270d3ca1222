"""Images as people have them: the numbers are those of one tensor [N, *shape]."""

import copy
import functools

import numpy as np
import pytest
import support
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import crais
from crais.images import read

pytestmark = pytest.mark.usefixtures("compiled")


class Model(nn.Module):
    """Images [3, 4, 4]."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.net = nn.Sequential(nn.Linear(4, 16), nn.GELU("tanh"), nn.Linear(16, 48))
        self.of_label = nn.Embedding(3, 4)

    def decode(self, z):
        return self.net(z).view(-1, 3, 4, 4)

    def conditional(self, z, y):
        return self.decode(z + self.of_label(y))


MODEL = Model().eval()
X = (torch.rand(10, 3, 4, 4, generator=torch.Generator().manual_seed(2)) < 0.4).float()
Y = torch.arange(10) % 3


class OfDictionaries(Dataset):
    def __init__(self, image="image", label="label"):
        self.names = (image, label)

    def __len__(self):
        return len(X)

    def __getitem__(self, i):
        return dict(zip(self.names, (X[i], int(Y[i]))))


class OfAnotherLibrary:
    """No Dataset of PyTorch's, as Hugging Face's is none."""

    __len__ = OfDictionaries.__len__

    def __getitem__(self, i):
        return {"pixel_values": X[i].numpy(), "labels": int(Y[i])}


class Stream(IterableDataset):
    """Items (image, label) one after the other."""

    def __iter__(self):
        return ((x, 0) for x in X.numpy())


def evaluate(images=X, decoder=MODEL.decode, **options):
    return support.evaluate(images=images, decoder=decoder, **{"latent": 4, **options})


@functools.cache
def wanted():
    return evaluate().log_likelihood


@pytest.mark.parametrize(
    ("images", "options"),
    [
        (X.double(), {}),
        (memoryview(X.numpy()), {}),
        ((255 * X).to(torch.uint8), {"scale": 255}),
        ((255 * X).to(torch.uint8), {"binarisation": "threshold:128"}),
        ((255 * X).to(torch.uint8), {"binarization": "threshold:128"}),
        (Stream(), {}),
        (DataLoader(Stream(), batch_size=7), {}),
        (list(X), {}),
        (tuple(X.numpy()), {}),
        ([(x, int(y)) for x, y in zip(X, Y)], {}),
        ([{"image": x} for x in X], {}),
        (OfDictionaries(), {}),
        (OfDictionaries("img"), {}),
        (OfDictionaries("scan"), {"key": "scan"}),
        (OfAnotherLibrary(), {}),
        (DataLoader(OfDictionaries(), batch_size=4), {"key": "image"}),
        (DataLoader(OfDictionaries("scan"), batch_size=None), {"key": "scan"}),
        ({"image": X, "label": Y}, {}),
        (X.permute(0, 2, 3, 1), {"layout": "NHWC"}),
        (X.permute(0, 2, 3, 1).numpy(), {"layout": "NHWC", "image_shape": (3, 4, 4)}),
        (X, {"layout": "NCHW"}),
    ],
)
def test_they_are_the_same_images(images, options):
    assert np.array_equal(evaluate(images, **options).log_likelihood, wanted())


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def at_an_odd_address(array):
    return np.frombuffer(b"\0" + array.tobytes(), "u1")[1:].view(array.dtype).reshape(array.shape)


BITS = np.random.default_rng(1).integers(0, 2, (4, 3, 2))


@pytest.mark.parametrize(
    "array",
    [
        *(BITS.astype(kind) for kind in "u1 <i4 >i4 >i8 f2 >f4 >f8 ?".split()),
        *(torch.tensor(BITS).to(kind) for kind in (torch.bool, torch.int32, torch.float16, torch.bfloat16)),
        *(BITS.T, BITS[::-1], BITS[::2, ::-1], np.broadcast_to(BITS[:1], (5, 3, 2)), torch.tensor(BITS).mT),
        *(read_only(BITS), at_an_odd_address(BITS), np.ma.masked_array(BITS, False), list(BITS)),
    ],
)
def test_arrays_are_read_whatever_their_type_and_order(array):
    found = read(array)[0]
    wanted = np.stack([np.asarray(one.double() if torch.is_tensor(one) else one) for one in array])
    assert found.device.type == "cpu" and found.dtype in (torch.uint8, torch.float32, torch.int32, torch.int64)
    assert np.array_equal(found.double().numpy(), wanted.astype("f8"))


def test_grey_images_may_have_their_one_channel_last():
    x = torch.cat([X[:, :1], X[:, 1:2]], 2)  # [10, 1, 8, 4]
    decode = lambda z: MODEL.net(z)[:, :32].view(-1, 1, 8, 4)
    found = evaluate(x.permute(0, 2, 3, 1), decode)
    assert np.array_equal(found.log_likelihood, evaluate(x, decode).log_likelihood)


@pytest.mark.parametrize("image_shape", [None, (3, 4, 4)])
@pytest.mark.parametrize(
    ("image", "decoder", "shape"),
    [
        (X[0], MODEL.decode, (3, 4, 4)),
        (X[0].flatten(), lambda z: MODEL.net(z), (48,)),
        (X[0, 0], lambda z: MODEL.net(z)[:, :16].view(-1, 1, 4, 4), (1, 4, 4)),
    ],
)
def test_one_image_needs_no_axis_of_images(image, decoder, shape, image_shape):
    shape_given = {} if image_shape is None else {"image_shape": shape}
    found = evaluate(image, decoder, **shape_given)
    alone = evaluate(image.reshape(1, *shape), decoder)
    assert len(found) == 1 and np.array_equal(found.log_likelihood, alone.log_likelihood)
    assert found.images.shape == (1, *shape)


def test_labels_beside_the_images_are_those_of_a_conditional_model():
    expected = evaluate(decoder=MODEL.conditional, labels=Y).log_likelihood
    for images in (
        DataLoader(TensorDataset(X, Y), batch_size=4),
        TensorDataset(X, Y),
        OfDictionaries(),
        DataLoader(OfDictionaries(label="target"), batch_size=3),
    ):
        found = evaluate(images, MODEL.conditional)
        assert np.array_equal(found.log_likelihood, expected)
        assert np.array_equal(evaluate(images).log_likelihood, wanted())
    given = evaluate(TensorDataset(X, Y), MODEL.conditional, labels=(Y + 1) % 3)
    assert not np.array_equal(given.log_likelihood, expected)


@pytest.mark.parametrize(
    ("images", "options", "words"),
    [
        (X.permute(0, 2, 3, 1), {}, r'x has shape \[4, 4, 3\].*shape \[3, 4, 4\]; give layout="NHWC"'),
        (X.permute(0, 2, 3, 1), {"image_shape": (3, 4, 4)}, r"images\.permute\(0, 3, 1, 2\)"),
        ((255 * X).to(torch.uint8), {"likelihood": crais.Gaussian(1.0)}, "say scale=255 .* scale=1 for one of bytes"),
        (X, {"layout": "CHW"}, "layout is NCHW or NHWC"),
        (X[:, 0], {"layout": "NHWC"}, r"these are \[10, 4, 4\]"),
        (OfDictionaries("scan"), {}, r"dictionary of scan, label: .*key='scan'"),
        (OfDictionaries(), {"key": "scan"}, "dictionary of image, label"),
        (TensorDataset(X), {"key": "image"}, "these are tuple"),
        ([1.0, 0.0], {}, "a list of float: give a list of tensors or arrays"),
        ([[1.0, 0.0], [0.0, 1.0]], {}, "a list of list"),
        ([], {}, "images is empty"),
        ([X[0], X[0, 0]], {}, "images differ in shape"),
        (X, {"decoder": MODEL.conditional}, "takes a label y as its last argument: give labels"),
    ],
)
def test_images_that_are_refused(images, options, words):
    with pytest.raises(crais.UsageError, match=words):
        evaluate(images, **options)


# Models of other types.


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16, torch.float16])
def test_a_copy_in_float32_is_evaluated_where_asked(kind):
    model = copy.deepcopy(MODEL).to(kind)
    single = copy.deepcopy(model).float()
    expected = evaluate(decoder=single.decode).log_likelihood
    with pytest.raises(crais.UsageError, match=r'float32: call \.float\(\), or give dtype="float32"'):
        evaluate(decoder=model.decode)
    for asked in ("float32", torch.float32):
        assert np.array_equal(evaluate(decoder=model.decode, dtype=asked).log_likelihood, expected)
    with pytest.raises(crais.UsageError, match="copies modules: .* not a function"):
        evaluate(decoder=lambda z: model.decode(z), dtype="float32")
    assert all(parameter.dtype == kind for parameter in model.parameters())
    prior = crais.GaussianPrior(torch.zeros(4, dtype=torch.float64), 1.0)
    whole = support.evaluate(model, X, latent=4, dtype="float32", prior=prior)
    np.testing.assert_allclose(whole.log_likelihood, expected, atol=0.5)
    with pytest.raises(crais.UsageError, match="evaluated in float32, not float64"):
        evaluate(dtype="float64")
