#!/usr/bin/env python3
"""What a sparse image costs on the wire: bytes that a client receives when it reads an export in order, with simple
replies (holes come as zeros) and with structured ones (holes come as a few bytes that say so).

    benches/nbd_wire.py RUBUS

Bytes are counted by the client, so that a busy machine changes nothing. The processor time is the server's.
"""

import os
import socket
import struct
import subprocess
import sys
import tempfile
import time

SIZE = 32 << 30
SPAN = 4 << 30  # of it are read
DATA = 16 << 20  # at 1 GiB, 3 GiB and so on
MAGIC = 0x25609513


def receive(stream, count, total):
    kept = b""
    left = count
    while left:
        part = stream.recv(min(left, 1 << 20))
        if not part:
            sys.exit("the server hung up")
        left -= len(part)
        total[0] += len(part)
        if count <= 4096:
            kept += part
    return kept


def connect(path, structured):
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(path)
    receive(stream, 18, [0])
    stream.sendall(struct.pack(">I", 3))
    options = [(8, b"")] if structured else []
    for option, data in options + [(7, struct.pack(">IH", 0, 0))]:
        stream.sendall(b"IHAVEOPT" + struct.pack(">II", option, len(data)) + data)
        kind = 0
        while kind != 1:
            _, _, kind, length = struct.unpack(">QIII", receive(stream, 20, [0]))
            receive(stream, length, [0])
            if kind >> 31:
                sys.exit(f"the server refuses option {option}")
    return stream


def read(stream, structured, request):
    """Reads all of the span; gives the bytes that came."""
    total = [0]
    for offset in range(0, SPAN, request):
        stream.sendall(struct.pack(">IHHQQI", MAGIC, 0, 0, offset, offset, request))
        if not structured:
            receive(stream, 16 + request, total)
            continue
        flags = 0
        while not flags & 1:
            _, flags, _, _, length = struct.unpack(">IHHQI", receive(stream, 20, total))
            receive(stream, length, total)
    return total[0]


def cpu_s(process):
    with open(f"/proc/{process.pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    rubus = sys.argv[1]
    with tempfile.TemporaryDirectory() as place:
        image, path = os.path.join(place, "disk.img"), os.path.join(place, "socket")
        with open(image, "wb") as file:
            file.truncate(SIZE)
            for at in range(1 << 30, SIZE, 2 << 30):
                file.seek(at)
                file.write(os.urandom(DATA))
        server = subprocess.Popen([rubus, "serve", image, "--unix", path, "--quiet"])
        try:
            while not os.path.exists(path):
                time.sleep(0.05)
            print("replies     request KiB        bytes received   server CPU s")
            for structured, request in [(False, 32 << 20), (True, 32 << 20), (True, 1 << 20), (True, 256 << 10)]:
                stream = connect(path, structured)
                before = cpu_s(server)
                total = read(stream, structured, request)
                took = cpu_s(server) - before
                name = "structured" if structured else "simple"
                print(f"{name:<11} {request >> 10:>11} {total:>21} {took:>14.2f}", flush=True)
                stream.sendall(struct.pack(">IHHQQI", MAGIC, 0, 2, 0, 0, 0))
                stream.close()
        finally:
            server.terminate()
            server.wait()


main()
