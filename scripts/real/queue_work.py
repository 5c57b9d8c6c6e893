"""Threads, a queue, locks, conditions, events, a pool. Prints the same in every interleaving; exits with 5."""

import queue
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

todo, done = queue.Queue(maxsize=3), queue.Queue()


def worker():
    while True:
        item = todo.get()
        if item is None:
            return
        done.put((item, item * item))
        todo.task_done()


workers = [threading.Thread(target=worker) for _ in range(3)]
for thread in workers:
    thread.start()
for number in range(20):
    todo.put(number)
todo.join()
for _ in workers:
    todo.put(None)
for thread in workers:
    thread.join()
print(sorted(done.get() for _ in range(20)))

count, lock, ready = 0, threading.Lock(), threading.Condition()
begin, meeting = threading.Event(), threading.Barrier(2)


def counter():
    global count
    begin.wait()
    meeting.wait()
    for _ in range(50):
        with lock:
            count += 1
    with ready:
        ready.notify_all()


counters = [threading.Thread(target=counter) for _ in range(2)]
for thread in counters:
    thread.start()
begin.set()
with ready:
    ready.wait_for(lambda: count == 100, timeout=60)
for thread in counters:
    thread.join()
print("counted", count)


def square(number):
    if number == 4:
        raise ValueError(f"no {number}")
    return number * number


with ThreadPoolExecutor(max_workers=2) as pool:
    futures = [pool.submit(square, number) for number in range(6)]
print([repr(future.exception() or future.result()) for future in futures])
sys.exit(5)
