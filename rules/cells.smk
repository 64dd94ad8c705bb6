# One job per cell: one instrument at one point, once. On a cluster, if so configured, one job per node instead.


rule measure:
    input:
        kernels=kernels_first if SOMETHING_FIRST else [],
    output:
        "results/{campaign}/cells/{cell}.json",
    log:
        "results/{campaign}/logs/{cell}.log",
    wildcard_constraints:
        cell="(cpu|memory|disk|network)/.+/[0-9]+",
    # The plan's order, which mixes programs and repetitions.
    priority: for_each_cell(lambda wildcards: PRIORITY[wildcards.cell])
    threads: lambda wildcards: jobs.threads([CELLS[wildcards.cell]], CLUSTER)
    resources:
        **SITE,
        # The local profile allows one at a time: nothing else may run beside a measurement.
        cell=1,
        estimate_ms=lambda wildcards: jobs.milliseconds([CELLS[wildcards.cell]]),
        runtime=lambda wildcards: jobs.minutes([CELLS[wildcards.cell]], PLAN),
        mem_mb=lambda wildcards: jobs.megabytes([CELLS[wildcards.cell]], PLAN),
        slurm_extra=lambda wildcards: jobs.extra([CELLS[wildcards.cell]], PLAN),
        nodes=lambda wildcards: 2 if takes_two(wildcards) else None,
        tasks=lambda wildcards: 2 if takes_two(wildcards) else None,
        mpi=lambda wildcards: "srun" if takes_two(wildcards) else None,
    params:
        # One function for all of it: Snakemake asks for them cell by cell before it begins.
        words=for_each_cell(lambda wildcards: measure_words(CELLS[wildcards.cell])),
    shell:
        "peakmark measure {params.words} --output {output:q} 2> {log:q}"


# The records are no declared outputs: Snakemake would delete the finished ones of a job that fails later.
rule measure_node:
    input:
        first=kernels_first_of_node if workflow.is_main_process else [],
    output:
        "results/{campaign}/nodes/{node}.{part}",
    log:
        "results/{campaign}/logs/nodes/{node}.{part}.log",
    wildcard_constraints:
        node="[^/]+",
        part="own|disk|pair",
    threads: lambda wildcards: CLUSTER.cpus if CLUSTER else workflow.cores
    resources:
        **SITE,
        cell=1,
        estimate_ms=lambda wildcards: jobs.milliseconds(missing_of_node(wildcards)),
        runtime=lambda wildcards: jobs.minutes(missing_of_node(wildcards), PLAN),
        mem_mb=lambda wildcards: jobs.megabytes(of_node(wildcards), PLAN),
        slurm_extra=lambda wildcards: jobs.extra(of_node(wildcards), PLAN),
        nodes=lambda wildcards: 2 if wildcards.part == "pair" else None,
        tasks=lambda wildcards: 2 if wildcards.part == "pair" else None,
        mpi=lambda wildcards: "srun" if wildcards.part == "pair" else None,
    params:
        cells=lambda wildcards: jobs.fingerprint(of_node(wildcards), PLAN),
        plan=f"{CAMPAIGN}/plan.json",
    shell:
        "peakmark measure-node --plan {params.plan:q} --node {wildcards.node:q} --part {wildcards.part:q}"
        " --output {output:q} 2> {log:q}"
