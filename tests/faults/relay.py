"""Two network namespaces with a bad line between them: packets pass through this process, which loses and delays them.

A kernel with netem could do it too (tc qdisc ... netem loss 3% delay 5ms); many that run tests have none.

    python relay.py NAMESPACE_A NAMESPACE_B LOSS DELAY_MS SEED     (paths below /proc/PID/ns); "up" on stdout when it works
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
ADDRESSES = ("10.99.0.1", "10.99.0.2")


def open_tun(namespace: str, address: str, peer: str) -> int:
    """A tunnel's end in a namespace, of which this process holds the other one."""
    libc = ctypes.CDLL(None, use_errno=True)
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(namespace, os.O_RDONLY)
    if libc.setns(there, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", b"line0", IFF_TUN | IFF_NO_PI))
    for words in (f"addr add {address} peer {peer} dev line0", "link set line0 up mtu 1400", "link set lo up"):
        subprocess.run(["ip", *words.split()], check=True)
    libc.setns(here, CLONE_NEWNET)
    os.close(here)
    os.close(there)
    return tun


def main() -> None:
    one, other, loss, delay_ms, seed = sys.argv[1:]
    ends = [open_tun(one, *ADDRESSES), open_tun(other, *reversed(ADDRESSES))]
    chance, delay = random.Random(int(seed)), float(delay_ms) / 1e3  # noqa: S311
    under_way: list[tuple[float, int, int, bytes]] = []
    count = 0
    print("up", flush=True)
    while True:
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        ready, _, _ = select.select([*ends, sys.stdin], [], [], wait)
        if sys.stdin in ready:
            return
        for side, end in enumerate(ends):
            if end in ready:
                packet = os.read(end, 65536)
                # Protocol 17 alone is lost: TCP would only become slow, and its handshake may take seconds.
                if not (packet[9:10] == b"\x11" and len(packet) > 500 and chance.random() < float(loss)):
                    count += 1
                    heapq.heappush(under_way, (time.monotonic() + delay, count, 1 - side, packet))
        while under_way and under_way[0][0] <= time.monotonic():
            _, _, side, packet = heapq.heappop(under_way)
            os.write(ends[side], packet)


if __name__ == "__main__":
    main()
