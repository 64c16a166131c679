"""Snapshots of torch's memory (`torch.cuda.memory._dump_snapshot`): read without running what is in them."""
