"""Data files that come with peakmark, and functions that read them. No command changes the files.

Each CSV file has one line per fact, with its source.

- microarchitecture.csv: CPUID -> microarchitecture.
- arm_cores.csv: part number of a core -> its name.
- operations.csv: microarchitecture, workload, ISA -> operations per cycle and core.
- caches.csv: microarchitecture, cache level -> bytes per cycle and core, load latency in cycles.
- memory.csv: CPU model name -> memory channels, and the fastest memory that the CPU supports.
- sockets.csv: microarchitecture -> the fastest memory of machines with this microarchitecture.
- gpu.csv: compute capability of a GPU -> operations per cycle and SM, rate of an NVLink.
- counters.csv: counters of errors and throttling -> warning about a row.
- comparability.csv: facts that prevent a verdict if they differ between two campaigns.
- HPL.dat: template of HPL's input. Its last lines, which only hpcc reads, add no sizes for PTRANS.
- subsystems.toml: the parts of a node that are measured, and their workloads.
- tables.yaml: the tables of a report, read by tools.tables.
- modules.sh: shell script that prints the changes of loading environment modules.
- ``*.txt.j2``: templates of texts that commands print.
"""

from peakmark.data.reading import microarchitecture, of_design, of_model, rendered, table, text

__all__ = ["microarchitecture", "of_design", "of_model", "rendered", "table", "text"]
