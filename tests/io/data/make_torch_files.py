"""Writes the .pt files of this folder, which tests/io/torch_file_test.cpp reads (PyTorch 2.13 wrote them).

    python3 make_torch_files.py
"""
import os
import warnings

import torch

warnings.simplefilter("ignore")
os.chdir(os.path.dirname(os.path.abspath(__file__)))
torch.manual_seed(1)


def counted(*shape):
    return torch.arange(float(torch.Size(shape).numel())).view(shape)


class Net(torch.nn.Module):
    """An MLP whose parameters count 0, 1, 2, ..., with a buffer."""

    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(2, 3)
        self.norm = torch.nn.BatchNorm1d(3)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(counted(*parameter.shape))

    def forward(self, x):
        return self.norm(self.fc1(x))


net = Net()
optimizer = torch.optim.Adam(net.parameters())
saved = {name: tensor.clone() for name, tensor in net.state_dict().items()}
net(torch.tensor([[1.0, 2.0], [3.0, 5.0]])).sum().backward()
optimizer.step()
state = net.state_dict()
for name, tensor in saved.items():
    state[name].copy_(tensor)

torch.save(counted(2, 3), "tensor.pt")
torch.save(state, "state_dict.pt")
torch.save({"model": state, "epoch": 3, "best": 0.5, "name": "x", "none": None, "big": 10**30,
            "bytes": b"abc", "size": torch.Size([1, 2]), "device": torch.device("cpu"),
            "dtype": torch.float32, "flags": [True, False], "optimizer": optimizer.state_dict()},
           "checkpoint.pt")
torch.save((counted(2, 2).byte(), torch.tensor([7, 8])), "tuple.pt")
base = counted(3, 4)
torch.save({"base": base, "transposed": base.t(), "row": base[1], "corner": base[1:, 2:],
            "scalar": torch.tensor(2.5), "empty": torch.empty(0, 5)}, "views.pt")
torch.save({str(dtype)[6:]: torch.tensor([0, 1, 2], dtype=dtype)
            for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
                          torch.int16, torch.int8, torch.uint8, torch.bool)}, "dtypes.pt")
torch.save({"weight": net.fc1.weight}, "parameter.pt")
# Refused.
torch.save(base.flatten()[:1].expand(1000), "expanded.pt")
torch.save(torch.nn.Linear(1, 1), "module.pt")
torch.save(counted(2), "legacy.pt", _use_new_zipfile_serialization=False)
torch.save({"epoch": 3}, "no_tensor.pt")
torch.save(counted(2), "protocol4.pt", pickle_protocol=4)
torch.jit.script(torch.nn.Linear(1, 1)).save("script.pt")
