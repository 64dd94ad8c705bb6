# peakmark: how close does this node come to its physical limits?
#
#   snakemake --profile local --configfile config/presets/quick.yaml    # this machine, some minutes
#   snakemake --profile slurm                                           # every cell a Slurm job
#
# The flow: plan -> measure (one job per cell) -> rows -> tables, report (figures, PDF and HTML).

from snakemake.utils import min_version

min_version("9.17")


report: "reports/snakemake/workflow.rst"


include: "rules/installed.smk"
include: "rules/common.smk"
include: "rules/cells.smk"
include: "rules/rows.smk"
include: "rules/tables.smk"
include: "rules/report.smk"


rule all:
    default_target: True
    input:
        rules.report.output,
        rules.tables.output,
        # Snakemake does not notice a lost record if newer tables depend on it.
        RUN.lost,


onstart:
    HELD = as_workflow_error(RUN.begin)
    startup.disable_rate_limit(workflow.scheduler, sys.argv)


onsuccess:
    as_workflow_error(RUN.print_summary)


onerror:
    as_workflow_error(RUN.print_failures)


startup.keep_handlers(workflow, globals())
