"""The program that the traces in this folder are of: a small attention model with a data loader, as users write it."""

import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

STEPS = 10


class Rows(Dataset):
    def __len__(self):
        return 8 * STEPS

    def __getitem__(self, index):
        total = 0
        for number in range(200):
            total += number * index
        return torch.full((16, 32), float(total % 7)), index % 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)

    def attend(self, x):
        query, key, value = self.mix(x).chunk(3, dim=-1)
        scores = query @ key.transpose(-2, -1) / 32**0.5
        return self.out(scores.softmax(dim=-1) @ value)

    def forward(self, x):
        x = x + self.attend(x)
        return torch.relu(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        x = self.blocks[0](x)
        x = checkpoint(self.blocks[1], x, use_reentrant=False)
        return self.head(x.mean(dim=1))


def train_step(net, optimizer, batch, target):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(batch), target)
    loss.backward()
    optimizer.step()
    return loss.item()


def train(recording):
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters())
    for batch, target in DataLoader(Rows(), batch_size=8, num_workers=2):
        train_step(net, optimizer, batch, target)
        recording.step()


def with_deepscope(folder, **options):
    import deepscope

    return deepscope.profile(folder, wait=1, warmup=1, active=2, **options)


def with_torch(folder):
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    write = torch.profiler.tensorboard_trace_handler(folder, worker_name="torch")
    return torch.profiler.profile(
        schedule=schedule, on_trace_ready=write, with_stack=True, record_shapes=True, profile_memory=True
    )


def with_lightning(folder):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def training_step(self, batch):
            data, target = batch
            return nn.functional.cross_entropy(self.net(data), target)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    torch.manual_seed(0)
    trainer = lightning.Trainer(
        profiler="deep", default_root_dir=folder, max_epochs=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, accelerator="cpu",
    )  # fmt: skip
    trainer.fit(Module(), DataLoader(Rows(), batch_size=8, num_workers=2, persistent_workers=True))


if __name__ == "__main__":
    torch.set_num_threads(1)
    how, folder = sys.argv[1:]
    if how == "lightning":
        with_lightning(folder)
    elif how == "torch":
        with with_torch(folder) as recording:
            train(recording)
    else:
        with with_deepscope(folder, record_shapes=True, profile_memory=how == "memory") as recording:
            train(recording)
