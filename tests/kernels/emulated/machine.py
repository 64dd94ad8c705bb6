"""One boot of an emulated machine: bochs, whose serial port is read as its programs run."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import tty
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from image import INSTRUCTIONS_PER_SECOND, environment, part

MEMORY_MIB = 192


@dataclass(frozen=True)
class Ended:
    """One line of /jobs: how it ended (exit code, or minus a signal; None: not in time), what it
    said, seconds here.
    """

    job: str
    status: int | None
    said: str
    seconds: float


def boot(root: Path, build: Path, image: Path, cpu: str, limit_s: float) -> Iterator[Ended]:
    """Boots ``image`` on a CPU of the model ``cpu`` and yields every job as it ends, within ``limit_s``."""
    with contextlib.ExitStack() as stack:
        # A file would be written in blocks, and the last of them never.
        serial, serial_end = pty.openpty()
        # bochs wants a terminal of this size for the emulated display.
        screen, screen_end = pty.openpty()
        for end in (serial, serial_end, screen, screen_end):
            stack.callback(os.close, end)
        tty.setraw(serial_end)
        fcntl.ioctl(screen_end, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        config, start = build / "bochsrc", build / "start"
        config.write_text(_config(root, build, image, cpu, os.ttyname(serial_end)))
        # Debian's bochs has the debugger built in, which waits for this word.
        start.write_text("continue\n")
        argv = [part(root, "usr/bin/bochs-bin"), "-q", "-f", config, "-rc", start]
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), screen_end)
        where = {"env": environment(root), "cwd": build, "start_new_session": True}
        process = subprocess.Popen(argv, **streams, **where)
        stack.callback(process.wait)
        stack.callback(process.send_signal, signal.SIGKILL)
        kept = build / f"serial.{cpu}.txt"
        yield from _read(process, serial, screen, kept, time.monotonic() + limit_s)


def _read(
    process: subprocess.Popen[bytes], serial: int, screen: int, kept: Path, deadline: float
) -> Iterator[Ended]:
    job, begun, said, text = "boot", time.monotonic(), "", b""
    with kept.open("wb") as copy:
        while time.monotonic() < deadline and process.poll() is None:
            ready, _, _ = select.select([serial, screen], [], [], 1.0)
            if screen in ready:
                os.read(screen, 65536)
            if serial not in ready:
                continue
            part_read = os.read(serial, 65536)
            copy.write(part_read)
            copy.flush()
            text += part_read
            *lines, text = text.split(b"\n")
            for line in (one.decode(errors="replace").rstrip("\r") for one in lines):
                if found := re.fullmatch(r"emulated: runs (.*)", line):
                    if job == "boot":
                        yield Ended(job, 0, said, time.monotonic() - begun)
                    job, begun, said = found[1], time.monotonic(), ""
                elif found := re.fullmatch(r"emulated: ended (-?\d+)", line):
                    yield Ended(job, int(found[1]), said, time.monotonic() - begun)
                    job = ""
                elif line == "emulated: all done":
                    return
                else:
                    said += line + "\n"
    if job:
        yield Ended(job, None, said, time.monotonic() - begun)


def _config(root: Path, build: Path, image: Path, cpu: str, serial: str) -> str:
    return f"""\
plugin_ctrl: unmapped=1, serial=1, extfpuirq=1, biosdev=0, speaker=0, parallel=0
config_interface: textconfig
display_library: term
romimage: file={part(root, "usr/share/bochs/BIOS-bochs-latest")}
vgaromimage: file={part(root, "usr/share/bochs/VGABIOS-lgpl-latest")}
cpu: model={cpu}, count=1, ips={INSTRUCTIONS_PER_SECOND}, reset_on_triple_fault=0, ignore_bad_msrs=1
megs: {MEMORY_MIB}
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path={image}, status=inserted
boot: cdrom
com1: enabled=1, mode=term, dev={serial}
clock: sync=none, time0=1700000000
log: {build / "bochs.log"}
panic: action=fatal
error: action=ignore
info: action=ignore
debug: action=ignore
"""
