"""Runs the kernels on CPUs that bochs emulates: ``make test-emulated``, for instruction sets that
no CPU at hand has.

Each model boots Debian's smallest kernel and runs cpubench and rambench with forced instruction
sets, which hold every result against plain C, and the tests of the sweeps. Rates mean nothing
there. It needs no root and installs nothing: where the Debian packages bochs, bochs-term,
bochsbios, vgabios, isolinux, syslinux-common and genisoimage are missing they are unpacked below
``build/emulated``, and so is the kernel, linux-image-cloud-amd64. A boot with all jobs takes a core
half a minute.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import image
import machine

REPOSITORY = Path(__file__).resolve().parents[3]
KERNELS = REPOSITORY / "build/kernels"
BUILD = REPOSITORY / "build/emulated"
COMPUTE = ("DP", "FP32", "DPMIX", "FP32MIX", "SP", "HP", "QP", "QPDOT")
UNITS = ("FP16", "BF16DOT", "QPMM", "BF16MM")
"""What no model has: the program must say so."""
MEMORY = ("RS", "WS", "RWS", "RR", "WR", "RWR", "TRIAD")


@dataclass(frozen=True)
class Model:
    """A CPU that bochs knows: its instruction sets, and how it does the dot product of bytes."""

    name: str
    has: tuple[str, ...]
    lacks: tuple[str, ...]
    dot: str


MODELS = (
    Model("corei7_skylake_x", ("avx512",), ("neon",), "vpmaddubsw + vpmaddwd + vpaddd"),
    Model("corei7_icelake_u", ("avx512",), ("neon",), "vpdpbusd (AVX512-VNNI)"),
    Model("corei7_haswell_4770", ("avx2", "sse2"), ("avx512",), "vpmaddubsw + vpmaddwd + vpaddd"),
)


@dataclass(frozen=True)
class Job:
    """A line for init, the exit code it must end with, and what must be said in it."""

    line: str
    status: int = 0
    said: str = ""


def jobs(model: Model) -> list[Job]:
    """What is run on a model: little work: an emulated second takes one here, of a CPU of 20 MHz."""
    compute = "/kernels/cpubench --warmup 0 --operations 1e6 --workload"
    memory = "/kernels/rambench --warmup 0 --block 1088 --pool 64KiB --total 1MiB --workload"
    best = f'"isa": "{model.has[0]}"'
    found = [
        Job("/tests/test_sweeps"),
        Job(f"{compute} QPDOT", said=f'"instruction": "{model.dot}'),
    ]
    for isa in model.has:
        found += [
            Job(f"{compute} {workload} --isa {isa}", said=f'"isa": "{isa}"') for workload in COMPUTE
        ]
        found += [
            Job(f"{memory} {workload} --isa {isa} --store {store}", said=f'"isa": "{isa}"')
            for workload in MEMORY
            for store in ("temporal", "streaming")
        ]
    found += [Job(f"{compute} DP", said=best), Job(f"{memory} RS", said=best)]
    found += [Job(f"{compute} DP --isa {isa}", 77, isa) for isa in model.lacks]
    found += [Job(f"{compute} {unit}", 77, unit) for unit in UNITS]
    return found


def check(job: Job, ended: machine.Ended) -> str | None:
    """What is wrong with a job's end, or None."""
    if ended.status is None:
        return "did not end in time"
    if ended.status != job.status:
        return f"ended with {ended.status}, not {job.status}"
    return None if job.said in ended.said else f"did not say {job.said}"


def run(model: Model, root: Path, limit_s: float) -> list[str]:
    """One boot; what was wrong, a sentence each."""
    wanted = jobs(model)
    programs = {f"kernels/{name}": KERNELS / name for name in ("cpubench", "rambench")}
    programs["tests/test_sweeps"] = KERNELS / "tests/test_sweeps"
    build = BUILD / model.name
    build.mkdir(parents=True, exist_ok=True)
    made = image.make(root, build, programs, [job.line for job in wanted])
    wrong, done = [], 0
    for ended in machine.boot(root, build, made, model.name, limit_s):
        if ended.job == "boot" and ended.status == 0:
            print(f"{model.name}: booted in {ended.seconds:.0f} s", flush=True)
            continue
        complaint = check(wanted[done], ended) if ended.job != "boot" else "did not boot in time"
        done += complaint is None or ended.status is not None
        print(
            f"{model.name}: {ended.seconds:5.1f} s  {complaint or 'right'}: {ended.job}", flush=True
        )
        if complaint is not None:
            wrong.append(f"{model.name}: {ended.job} {complaint}: {ended.said.strip()[-600:]}")
    if done < len(wanted) and not wrong:
        wrong.append(f"{model.name}: only {done} of {len(wanted)} jobs ended")
    return wrong


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [model.name for model in MODELS]
    several = "only this model; may be repeated"
    parser.add_argument("--cpu", action="append", choices=names, help=several)
    seconds = "seconds for each boot (default 900)"
    parser.add_argument("--limit", type=float, default=900, metavar="S", help=seconds)
    options = parser.parse_args(arguments)
    BUILD.mkdir(parents=True, exist_ok=True)
    root = image.unpack(BUILD)
    wrong = [
        sentence
        for model in MODELS
        if model.name in (options.cpu or names)
        for sentence in run(model, root, options.limit)
    ]
    print("\n".join(wrong) if wrong else "all right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
