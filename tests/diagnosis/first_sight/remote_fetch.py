# SPDX-License-Identifier: Apache-2.0
"""Object store: each sample is fetched over the network when it is needed, one after another.

Source: DLPerf, slow input; PyTorch tuning guide, workers and prefetching.
"""

import socket
import subprocess
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SERVER = """
import socket, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
connection, _ = listener.accept()
while connection.recv(8):
    time.sleep(0.003)
    connection.sendall(bytes(4096))
"""
server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
store = socket.create_connection(("127.0.0.1", int(server.stdout.readline())))


class Objects(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, index):
        store.sendall(index.to_bytes(8, "little"))
        data = bytearray()
        while len(data) < 4096:
            data += store.recv(4096)  # planted
        return torch.frombuffer(data, dtype=torch.float32)


model = nn.Sequential(nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x in DataLoader(Objects(), batch_size=8):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
store.close()
server.wait()
