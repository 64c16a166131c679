"""Four ranks on gloo: messages from each even rank to the next one and round the ring; rank 2 is late to all-reduce."""

import sys
import time

import torch
import torch.distributed as dist

import deepscope

LATE, LATE_S = 2, 0.05
ELEMENTS = 1000


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    out, into = torch.full((ELEMENTS,), float(rank)), torch.zeros(ELEMENTS)
    with deepscope.profile(sys.argv[1], wait=1, warmup=1, active=4, record_shapes=True) as recording:
        for _ in range(7):
            if rank % 2 == 0:
                dist.send(out, rank + 1)
            else:
                dist.recv(into, rank - 1)
            ring = [dist.P2POp(dist.isend, out, (rank + 1) % ranks), dist.P2POp(dist.irecv, into, (rank - 1) % ranks)]
            for work in dist.batch_isend_irecv(ring):
                work.wait()
            dist.barrier()
            if rank == LATE:
                time.sleep(LATE_S)
            dist.all_reduce(out)
            dist.broadcast(out, 0)
            recording.step()
    dist.destroy_process_group()


main()
