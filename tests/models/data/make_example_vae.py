"""Writes example_vae.pt, which tests/models/state_dict_test.cpp reads: the VAE of pytorch/examples, smaller, in
a checkpoint. Prints what the test expects of it (PyTorch 2.13 wrote the file).

    python3 make_example_vae.py
"""
import os

import torch
from torch import nn
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 5)
        self.fc21 = nn.Linear(5, 2)
        self.fc22 = nn.Linear(5, 2)
        self.fc3 = nn.Linear(2, 5)
        self.fc4 = nn.Linear(5, 16)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))


torch.manual_seed(1)
model = VAE()
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "example_vae.pt")
torch.save({"model": model.state_dict(), "epoch": 1, "history": torch.zeros(2)}, path)
mean, log_var = model.encode(torch.ones(1, 16))
print(mean.tolist(), log_var.tolist(), model.decode(torch.ones(1, 2)).sum().item())
