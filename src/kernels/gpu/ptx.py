"""Write the GPU kernels that repeat themselves as PTX text: `python3 ptx.py FOLDER`, as make does.

Each module states the oldest PTX version and compute capability that it needs. Two modules are written
by hand: bulk.ptx and latency.ptx.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ACCUMULATORS = 16
"""Chains of a thread in the multiply-add kernels: they hide the latency from 4 warps on."""

UNROLL = 8
"""Repetitions of the chains in the loop of a multiply-add kernel."""

A_BYTES = 64 * 32
"""Left operand of wgmma: 64 rows of 32 bytes. The right one, 256 columns of 32 bytes, follows it."""

WGMMA_BYTES = A_BYTES + 256 * 32


def module(version: str, target: str, *entries: str) -> str:
    return f".version {version}\n.target {target}\n.address_size 64\n" + "".join(entries)


def entry(name: str, parameters: str, registers: str, body: Iterable[str], limit: str = "") -> str:
    """Return a kernel. Its parameters, written as "u64 source, u32 loops", are loaded into registers
    of their names."""
    words = parameters.split(", ")
    declared = ", ".join(f".param .{word}" for word in words)
    lines = [f".reg .{word.replace(' ', ' %')};" for word in words if word]
    lines += [f".reg .{group};" for group in registers.split("; ") if group]
    for kind, register in (word.split() for word in words):
        lines.append(f"ld.param.{kind} %{register}, [{register}];")
    text = "\n".join([*lines, *body, "ret;"])
    return f"\n.visible .entry {name}({declared}){limit}\n{{\n{text}\n}}\n"


# Rate kernels: a loop without access to global memory, its clock, and a checksum of each thread.

RATE_PARAMETERS = "u64 operands, u64 results, u64 clocks, u32 loops"
RATE_REGISTERS = "b32 %thread, %lane, %first, %block, %size, %i; b64 %at, %sum, %word, %clock, %time, %end; pred %p"


def checksum(bits: int, results: list[str]) -> list[str]:
    """Return the lines that add (2 i + 1) times the bits of result i to %sum, modulo 2^64."""
    lines = []
    for index, register in enumerate(results):
        lines.append(f"cvt.u64.u{bits} %word, {register};")
        lines.append(f"mad.lo.u64 %sum, %word, {2 * index + 1}, %sum;")
    return lines


def rate(
    registers: str,
    prepare: list[str],
    loop: list[str],
    finish: list[str],
    checks: list[str],
    limit: str = "",
) -> str:
    """Return a kernel that runs a loop and adds a thread's checksum to that of earlier launches. The
    first thread of a block adds cycles and nanoseconds of the loop to those of its block."""
    body = [
        "mov.u32 %first, %tid.x;",
        "mov.u32 %block, %ctaid.x;",
        "mov.u32 %size, %ntid.x;",
        "mad.lo.u32 %thread, %block, %size, %first;",
        "and.b32 %lane, %first, 31;",
        *prepare,
        "mov.u32 %i, 0;",
        "mov.u64 %clock, %clock64;",
        "mov.u64 %time, %globaltimer;",
        "LOOP:",
        '.pragma "nounroll";',
        *loop,
        "add.u32 %i, %i, 1;",
        "setp.lt.u32 %p, %i, %loops;",
        "@%p bra LOOP;",
        "mov.u64 %end, %clock64;",
        "sub.u64 %clock, %end, %clock;",
        "mov.u64 %end, %globaltimer;",
        "sub.u64 %time, %end, %time;",
        *finish,
        "setp.ne.u32 %p, %first, 0;",
        "@%p bra SUM;",
        "mad.wide.u32 %at, %block, 16, %clocks;",
        "red.global.add.u64 [%at], %clock;",
        "red.global.add.u64 [%at+8], %time;",
        "SUM:",
        "mad.wide.u32 %at, %thread, 8, %results;",
        "ld.global.u64 %sum, [%at];",
        *checks,
        "st.global.u64 [%at], %sum;",
    ]
    return entry("rate", RATE_PARAMETERS, f"{RATE_REGISTERS}; {registers}", body, limit)


def multiply_add(instruction: str, bits: int) -> str:
    """Return the kernel of a multiply-add. Operands: start values, a factor and a summand for each
    lane, 8 bytes each. Integers are multiplied by the factor; floating-point numbers are squared, as
    x * x + c with c near -2 never settles: the data keep changing, and no error is lost."""
    chains = [f"%x{index}" for index in range(ACCUMULATORS)]
    prepare = ["mad.wide.u32 %at, %lane, 8, %operands;"]
    for index, register in enumerate([*chains, "%factor", "%summand"]):
        prepare.append(f"ld.global.b{bits} {register}, [%at+{index * 32 * 8}];")
    loop = []
    for chain in chains * UNROLL:
        factor = "%factor" if instruction.startswith("mad") else chain
        loop.append(f"{instruction} {chain}, {chain}, {factor}, %summand;")
    registers = f"b{bits} %x<{ACCUMULATORS}>, %factor, %summand"
    return rate(registers, prepare, loop, [], checksum(bits, chains))


@dataclass(frozen=True)
class Product:
    """D (rows x 8, for wgmma 64 x 256) += A (rows x depth) * B. Signed products are added and
    subtracted in turn, and once more at the end, so that every sum stays exact; those of integers and
    FP64 have room enough to be added only."""

    instruction: str
    rows: int = 64
    depth_bytes: int = 32
    sign_bits: int = 0
    chains: int = 6
    unroll: int = 4

    @property
    def bits(self) -> int:
        return 64 if ".f64" in self.instruction else 32


def results_of(product: Product, count: int) -> tuple[list[str], list[str], list[str]]:
    """Return the result registers, the lines that clear them, and those that make -0 to 0."""
    results = [f"%d{index}" for index in range(count)]
    clear = [f"mov.b{product.bits} {result}, 0;" for result in results]
    tidy = []
    if ".f32." in product.instruction:
        tidy = [f"add.f32 {result}, {result}, 0f00000000;" for result in results]
    return results, clear, tidy


def warp_product(product: Product) -> str:
    """Return the kernel of an mma.sync. Operands: A by rows, then B by columns. Fragments are those of
    the PTX ISA: lane / 4 is the row or column, lane % 4 the register within four."""
    bits, unit, depth = product.bits, product.bits // 8, product.depth_bytes
    groups, parts = product.rows // 8, product.depth_bytes // (product.bits // 2)
    left = [f"%a{index}" for index in range(groups * parts)]
    right = [f"%b{index}" for index in range(parts)]
    results, clear, tidy = results_of(product, 2 * groups * product.chains)
    prepare = [
        "shr.u32 %i, %lane, 2;",
        f"mad.wide.u32 %at, %i, {depth}, %operands;",
        "and.b32 %i, %lane, 3;",
        f"mad.wide.u32 %at, %i, {unit}, %at;",
    ]
    for index, register in enumerate(left):
        offset = (index % groups) * 8 * depth + (index // groups) * 4 * unit
        prepare.append(f"ld.global.b{bits} {register}, [%at+{offset}];")
    for index, register in enumerate(right):
        offset = product.rows * depth + index * 4 * unit
        prepare.append(f"ld.global.b{bits} {register}, [%at+{offset}];")
    minus = left
    if product.sign_bits:
        minus = [register.replace("a", "m") for register in left]
        for negative, positive in zip(minus, left, strict=True):
            prepare.append(f"xor.b32 {negative}, {positive}, {product.sign_bits};")

    def step(factors: list[str]) -> list[str]:
        lines = []
        for first in range(0, len(results), 2 * groups):
            sums = ", ".join(results[first : first + 2 * groups])
            operands = f"{{{sums}}}, {{{', '.join(factors)}}}, {{{', '.join(right)}}}, {{{sums}}}"
            lines.append(f"mma.sync.aligned.{product.instruction} {operands};")
        return lines

    loop = (step(left) + step(minus)) * (product.unroll // 2)
    registers = f"b{bits} %a<{len(left)}>, %m<{len(left)}>, %b<{parts}>, %d<{len(results)}>"
    checks = checksum(bits, results)
    return rate(registers, prepare + clear, loop, step(left) + tidy, checks, " .maxnreg 128")


def group_product(product: Product) -> str:
    """Return the kernel of a wgmma. Operands: the bytes of shared memory, cores of 8 rows by 16 bytes
    without swizzling; cores of one row are 128 bytes apart, rows of cores 256."""
    results, clear, tidy = results_of(product, 128)
    leading, stride = 128 >> 4, 256 >> 4
    sums = ", ".join(results)

    def step(sign: int) -> str:
        tail = "" if ".s32" in product.instruction else f", {sign}, 1"
        tail += ", 0, 0" if product.instruction.endswith("f16") else ""
        return (
            f"wgmma.mma_async.sync.aligned.{product.instruction} "
            f"{{{sums}}}, %left, %right, %add{tail};"
        )

    wait = ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
    prepare = [
        "mov.u32 %shared, operand;",
        "shl.b32 %i, %first, 2;",
        "shl.b32 %size, %size, 2;",
        "FILL:",
        "cvt.u64.u32 %at, %i;",
        "add.u64 %at, %at, %operands;",
        "ld.global.b32 %lane, [%at];",
        "add.u32 %word32, %i, %shared;",
        "st.shared.b32 [%word32], %lane;",
        "add.u32 %i, %i, %size;",
        f"setp.lt.u32 %p, %i, {WGMMA_BYTES};",
        "@%p bra FILL;",
        "fence.proxy.async.shared::cta;",
        "bar.sync 0;",
        "shr.u32 %i, %shared, 4;",
        "cvt.u64.u32 %left, %i;",
        f"or.b64 %left, %left, {leading << 16 | stride << 32};",
        f"add.u64 %right, %left, {A_BYTES >> 4};",
        *clear,
        "setp.ne.u32 %add, %loops, 0;",
        "wgmma.fence.sync.aligned;",
    ]
    loop = [*[step(1), step(-1)] * (product.unroll // 2), *wait]
    registers = "b32 %shared, %word32, %d<128>; b64 %left, %right; pred %add"
    finish = [step(1), *wait, *tidy]
    text = rate(registers, prepare, loop, finish, checksum(32, results))
    return f"\n.shared .align 1024 .b8 operand[{WGMMA_BYTES}];" + text


# Memory kernels. A warp has one block of contiguous bytes, or several where they are small.

MEMORY_PARAMETERS = (
    "u64 source, u64 target, u64 sums, u32 log_block, u32 log_blocks, u32 factor, u32 seed"
)
STEP = 0x9E3779B1
"""Word i of a pattern is i * STEP + seed, modulo 2^32."""


def memory(name: str, width: int, action: str, store: str = "st.global") -> str:
    """Return a kernel of warps that read, write, copy or verify `width` times 512 bytes at once.

    Blocks are in the order of their numbers with factor 1, else in a pseudo-random order: number times
    an odd factor, folded, and times the factor again is a permutation of the numbers below a power of
    two. Reading sums up all words, verifying counts those that hold the pattern, each as 1,024 sums.
    """
    portion = width * 512
    body = [
        "mov.u32 %warp, %ctaid.x;",
        "mov.u32 %i, %ntid.x;",
        "mov.u32 %lane, %tid.x;",
        "mad.lo.u32 %warp, %warp, %i, %lane;",
        "shr.u32 %warp, %warp, 5;",
        "and.b32 %lane, %lane, 31;",
        "mov.u64 %one, 1;",
        "shl.b64 %bytes, %one, %log_block;",
        "sub.u64 %inside, %bytes, 1;",
        f"max.u64 %bytes, %bytes, {portion};",
        "cvt.u64.u32 %at, %warp;",
        "mul.lo.u64 %at, %at, %bytes;",
        "add.u64 %end, %at, %bytes;",
        "mad.wide.u32 %at, %lane, 16, %at;",
        "cvt.u32.u64 %i, %one;",
        "shl.b32 %mask, %i, %log_blocks;",
        "sub.u32 %mask, %mask, 1;",
        "add.u32 %fold, %log_blocks, 1;",
        "shr.u32 %fold, %fold, 1;",
        "mov.u32 %sum, 0;",
        "LOOP:",
    ]
    for index in range(width):
        place = f"%place{index}"
        body += [
            f"add.u64 {place}, %at, {index * 512};",
            f"shr.u64 %far, {place}, %log_block;",
            "cvt.u32.u64 %i, %far;",
            "mul.lo.u32 %i, %i, %factor;",
            "and.b32 %i, %i, %mask;",
            "shr.u32 %j, %i, %fold;",
            "setp.ne.u32 %p, %factor, 1;",
            "@%p xor.b32 %i, %i, %j;",
            "mul.lo.u32 %i, %i, %factor;",
            "and.b32 %i, %i, %mask;",
            "cvt.u64.u32 %far, %i;",
            "shl.b64 %far, %far, %log_block;",
            f"and.b64 {place}, {place}, %inside;",
            f"or.b64 {place}, {place}, %far;",
        ]
    words = [[f"%v{4 * index + part}" for part in range(4)] for index in range(width)]
    if action != "write":
        for index in range(width):
            body.append(f"add.u64 %far, %source, %place{index};")
            vector = ", ".join(words[index])
            body.append(f"ld.global.nc.L1::no_allocate.v4.b32 {{{vector}}}, [%far];")
    for index in range(width):
        if action in ("write", "verify"):
            body += [
                f"shr.u64 %far, %place{index}, 2;",
                "cvt.u32.u64 %i, %far;",
                f"mad.lo.u32 %i, %i, {STEP}, %seed;",
            ]
        for part, word in enumerate(words[index]):
            if action == "write":
                body.append(f"add.u32 {word}, %i, {part * STEP & 0xFFFFFFFF};")
            if action == "read":
                body.append(f"add.u32 %sum, %sum, {word};")
            if action == "verify":
                body.append(f"add.u32 %j, %i, {part * STEP & 0xFFFFFFFF};")
                body.append(f"setp.eq.u32 %p, {word}, %j;")
                body.append("@%p add.u32 %sum, %sum, 1;")
        if action in ("write", "copy"):
            body.append(f"add.u64 %far, %target, %place{index};")
            body.append(f"{store}.v4.b32 [%far], {{{', '.join(words[index])}}};")
    body += [f"add.u64 %at, %at, {portion};", "setp.lt.u64 %p, %at, %end;", "@%p bra LOOP;"]
    if action in ("read", "verify"):
        for distance in (16, 8, 4, 2, 1):
            body.append(f"shfl.sync.bfly.b32 %i, %sum, {distance}, 31, 0xffffffff;")
            body.append("add.u32 %sum, %sum, %i;")
        body += [
            "and.b32 %i, %warp, 1023;",
            "mad.wide.u32 %far, %i, 4, %sums;",
            "setp.eq.u32 %p, %lane, 0;",
            "@%p red.global.add.u32 [%far], %sum;",
        ]
    registers = (
        f"b32 %warp, %lane, %i, %j, %mask, %fold, %sum, %v<{4 * width}>; "
        f"b64 %one, %bytes, %inside, %at, %end, %far, %place<{width}>; pred %p"
    )
    return entry(name, MEMORY_PARAMETERS, registers, body)


def modules() -> dict[str, str]:
    """Return the text of each module by the name of its file, without .ptx."""
    texts = {
        "fp64": module("6.5", "sm_75", multiply_add("fma.rn.f64", 64)),
        "fp32": module("6.5", "sm_75", multiply_add("fma.rn.f32", 32)),
        "fp16": module("6.5", "sm_75", multiply_add("fma.rn.f16x2", 32)),
        "int32": module("6.5", "sm_75", multiply_add("mad.lo.s32", 32)),
    }
    kernels = [memory(f"read{width}", width, "read") for width in (1, 4, 8)]
    kernels += [memory(f"write{width}", width, "write") for width in (1, 4, 8)]
    kernels += [memory(f"copy{width}", width, "copy") for width in (1, 2, 4, 8)]
    kernels += [memory(f"copy{width}cs", width, "copy", "st.global.cs") for width in (2, 8)]
    texts["memory"] = module("7.4", "sm_75", *kernels, memory("verify", 4, "verify"))
    half, word, byte = 0x80008000, 0x80000000, 0x80808080
    warp = {
        ("tc-fp16-75", "6.5", "sm_75"): Product("m16n8k8.row.col.f32.f16.f16.f32", 16, 16, half),
        ("tc-int8-75", "6.5", "sm_75"): Product("m8n8k16.row.col.s32.s8.s8.s32", 8, 16),
        ("tc-fp64-80", "7.0", "sm_80"): Product("m8n8k4.row.col.f64.f64.f64.f64", 8, 32, chains=8),
        ("tc-tf32-80", "7.0", "sm_80"): Product("m16n8k8.row.col.f32.tf32.tf32.f32", 16, 32, word),
        ("tc-fp16-80", "7.0", "sm_80"): Product("m16n8k16.row.col.f32.f16.f16.f32", 16, 32, half),
        ("tc-bf16-80", "7.0", "sm_80"): Product("m16n8k16.row.col.f32.bf16.bf16.f32", 16, 32, half),
        ("tc-int8-80", "7.0", "sm_80"): Product("m16n8k32.row.col.s32.s8.s8.s32", 16, 32),
        ("tc-fp8-89", "8.4", "sm_89"): Product("m16n8k32.row.col.f32.e4m3.e4m3.f32", 16, 32, byte),
        ("tc-fp64-90", "7.8", "sm_90"): Product(
            "m16n8k16.row.col.f64.f64.f64.f64", 16, 128, chains=4
        ),
    }
    for (name, version, target), product in warp.items():
        texts[name] = module(version, target, warp_product(product))
    group = {
        "tc-tf32-90a": "m64n256k8.f32.tf32.tf32",
        "tc-fp16-90a": "m64n256k16.f32.f16.f16",
        "tc-bf16-90a": "m64n256k16.f32.bf16.bf16",
        "tc-int8-90a": "m64n256k32.s32.s8.s8",
        "tc-fp8-90a": "m64n256k32.f32.e4m3.e4m3",
    }
    for name, instruction in group.items():
        texts[name] = module("8.0", "sm_90a", group_product(Product(instruction, unroll=8)))
    return texts


if __name__ == "__main__":
    for name, text in modules().items():
        Path(sys.argv[1], f"{name}.ptx").write_text(text)
