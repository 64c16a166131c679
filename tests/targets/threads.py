"""Threads of the user's own: started in the window, one in another's middle, and with generators on each."""

import threading
from concurrent.futures import ThreadPoolExecutor

import torch


def numbers(n):
    for index in range(n):
        yield torch.ones(3) * index


def work(n):
    total = torch.zeros(3)
    for item in numbers(n):
        total = total + item
        total.sin()
    return total.sum()


def nested(in_thread):
    thread = threading.Thread(target=in_thread(work), args=(2,))
    x = torch.ones(2) * 2
    thread.start()
    thread.join()
    x.cos()


def main(in_thread=lambda function: function):
    threads = [threading.Thread(target=in_thread(work), args=(n,)) for n in (3, 4)]
    for thread in threads:
        thread.start()
    y = work(5) * 2
    for thread in threads:
        thread.join()
    nested(in_thread)
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(in_thread(work), range(4)))
    y + sum(results)
