#!/usr/bin/env python3
"""A disk of known slowness: an NBD server that keeps an image and answers as a slow card would. `benches/enough.py` puts
it behind nbdfuse and a loop device.

The disk serves one request after the other. Each takes:
- write: write_ms, and its bytes at mb_per_s (in 10^6 bytes per second)
- flush: flush_ms, and slow_ms more in slow_share of the flushes (random, the same ones in each run)
- read: nothing but the wait for its turn
Every stall_every_s the disk stands still for stall_s.
It begins without any slowness. SIGUSR1 makes it slow and starts the clock of the stalls, SIGUSR2 makes it fast again.

Usage: slow_disk.py SOCKET IMAGE [flush_ms=2] [write_ms=0.1] [mb_per_s=20] [slow_share=0.01 slow_ms=80] [stall_every_s=12 stall_s=1.5]
"""

import heapq
import mmap
import os
import random
import signal
import socket
import struct
import sys
import threading
import time

WISHES = {"flush_ms", "write_ms", "mb_per_s", "slow_share", "slow_ms", "stall_every_s", "stall_s"}
# Numbers of the NBD protocol.
MAGIC, OPTION_MAGIC, OPTION_REPLY = 0x4E42444D41474943, 0x49484156454F5054, 0x3E889045565A9
REQUEST, REPLY = 0x25609513, 0x67446698
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
GO, ACK, INFO, UNSUPPORTED = 7, 1, 3, 0x80000001
HAS_FLAGS, SEND_FLUSH = 1, 4


class Slowness:
    """Times are in whole nanoseconds, which have no rounding to go round in circles with."""

    def __init__(self, wishes):
        assert wishes.keys() <= WISHES, wishes.keys() - WISHES
        get = lambda name: float(wishes.get(name, 0))
        ms = lambda name: int(get(name) * 1e6)
        self.flush, self.write, self.hiccup = ms("flush_ms"), ms("write_ms"), ms("slow_ms")
        self.per_byte = 1e3 / get("mb_per_s") if "mb_per_s" in wishes else 0
        self.slow_share = get("slow_share")
        self.every, self.stall = int(get("stall_every_s") * 1e9), int(get("stall_s") * 1e9)
        self.fast()

    def slow(self, *_):
        self.busy_until = time.monotonic_ns()
        self.dice = random.Random(1)
        self.began = self.busy_until

    def fast(self, *_):
        self.began = None

    def answer_at(self, kind, length):
        """When a request that came now is answered."""
        # A signal may change it any time.
        now, began = time.monotonic_ns(), self.began
        if began is None:
            return now
        takes = 0
        if kind == WRITE:
            takes = self.write + int(length * self.per_byte)
        elif kind == FLUSH:
            takes = self.flush
            if self.dice.random() < self.slow_share:
                takes += self.hiccup
        self.busy_until = self.with_stalls(max(now, self.busy_until), takes, began)
        return self.busy_until

    def with_stalls(self, start, takes, began):
        """The end of work that begins then: the disk works in no stall."""
        if not self.stall:
            return start + takes
        while True:
            # The stalls begin at the multiples of their period, but not at once.
            number, into = divmod(start - began, self.every)
            if number >= 1 and into < self.stall:
                start += self.stall - into
                continue
            left = self.every - into
            if takes <= left:
                return start + takes
            start, takes = start + left, takes - left


def receive(peer, length):
    got = bytearray()
    while len(got) < length:
        more = peer.recv(length - len(got))
        if not more:
            sys.exit(0)
        got += more
    return bytes(got)


def negotiate(peer, size):
    peer.sendall(struct.pack(">QQH", MAGIC, OPTION_MAGIC, 3))
    receive(peer, 4)
    while True:
        _, option, length = struct.unpack(">QII", receive(peer, 16))
        receive(peer, length)
        reply = lambda kind, body=b"": peer.sendall(struct.pack(">QIII", OPTION_REPLY, option, kind, len(body)) + body)
        if option == GO:
            reply(INFO, struct.pack(">HQH", 0, size, HAS_FLAGS | SEND_FLUSH))
            reply(ACK)
            return
        reply(UNSUPPORTED)


def serve(peer, disk, slowness):
    waiting, changed = [], threading.Condition()

    def answer():
        while True:
            with changed:
                while not waiting or waiting[0][0] > time.monotonic_ns():
                    changed.wait(max(0, waiting[0][0] - time.monotonic_ns()) / 1e9 if waiting else None)
                _, _, body = heapq.heappop(waiting)
            peer.sendall(body)

    threading.Thread(target=answer, daemon=True).start()
    number = 0
    while True:
        magic, _, kind, cookie, offset, length = struct.unpack(">IHHQQI", receive(peer, 28))
        assert magic == REQUEST
        if kind == DISCONNECT:
            return
        body = struct.pack(">IIQ", REPLY, 0, cookie)
        if kind == WRITE:
            disk[offset : offset + length] = receive(peer, length)
        elif kind == READ:
            body += disk[offset : offset + length]
        number += 1
        with changed:
            heapq.heappush(waiting, (slowness.answer_at(kind, length), number, body))
            changed.notify()


def main():
    path, image, *wishes = sys.argv[1:]
    slowness = Slowness(dict(wish.split("=") for wish in wishes))
    signal.signal(signal.SIGUSR1, slowness.slow)
    signal.signal(signal.SIGUSR2, slowness.fast)
    # A thread that waits in a lock hears no signal; this one waits in a system call.
    with open(image, "r+b") as file, socket.socket(socket.AF_UNIX) as listener:
        disk = mmap.mmap(file.fileno(), 0)
        listener.bind(path)
        listener.listen(1)
        peer, _ = listener.accept()
        negotiate(peer, os.path.getsize(image))
        serve(peer, disk, slowness)


main()
