# peakmark: how close does this node come to its physical limits?
#
#   snakemake --profile local --configfile config/presets/quick.yaml    # this machine, four minutes
#   snakemake --profile slurm                                           # every cell a Slurm job
#
# The flow: plan -> measure (one job per cell) -> tables, figures -> report (PDF and HTML).

from snakemake.utils import min_version

min_version("9.0")


report: "reports/snakemake/workflow.rst"


include: "rules/common.smk"
include: "rules/cells.smk"


# A job on a node needs no more, and starts the sooner.
if workflow.is_main_process:

    include: "rules/plan.smk"
    include: "rules/repetitions.smk"
    include: "rules/build.smk"
    include: "rules/tables.smk"
    include: "rules/report.smk"

    rule all:
        default_target: True
        input:
            rules.report.output,
            rules.html.output,
            rules.tables.output,
            all_records if ROUNDS else LOST,


# Two campaigns that measure at once would measure each other.
onstart:
    MEASURING = take_machine()


onsuccess:
    shell("peakmark summary {CAMPAIGN:q}")


onerror:
    shell("peakmark status {CAMPAIGN:q} --failed")
