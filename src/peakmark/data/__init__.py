"""Data about processors, one CSV line for each fact and its source; and other files that peakmark
reads. No command changes them.

microarchitecture.csv   CPUID -> microarchitecture
operations.csv          microarchitecture, workload, ISA -> operations per cycle and core
caches.csv              microarchitecture, cache level -> bytes per cycle and core, load latency in
                        cycles, each with its source
memory.csv              CPU model name -> memory channels and the fastest memory it takes
comparability.csv       which fact that differs between two campaigns stops which verdicts
sockets.csv             microarchitecture -> the best memory that any machine of it was sold with
HPL.dat                 what HPL is to solve, with places for N and the block; the last lines are
                        hpcc's: sizes of its transposition, none
subsystems.toml         the parts of a node that are measured, and their workloads
tables.yaml             the tables of a report; tools.tables reads it
refusals.yaml           Slurm's answers -> what to do; slurm.failures reads it
modules.sh              prints what loading environment modules changes
*.txt.j2                what commands print
"""

from peakmark.data.processors import microarchitecture, of_design, of_model
from peakmark.data.reading import table, text
from peakmark.data.templates import rendered

__all__ = ["microarchitecture", "of_design", "of_model", "rendered", "table", "text"]
