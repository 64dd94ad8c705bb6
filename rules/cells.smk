# One job per cell: one instrument at one point, once. On a cluster, if so configured, a job for several of them.


rule kernels:
    input:
        build.sources(),
    output:
        # Another run may have compiled them by now and measure with them.
        update(build.programs()),
    log:
        build.folder() / "build.log",
    localrule: True
    threads: 2
    params:
        make=lambda wildcards: build.make_command(),
    shell:
        "export MAKEFLAGS=-j{threads}; ({params.make}) > {log:q} 2>&1"


rule measure:
    input:
        RUN.cell_inputs,
    output:
        "results/{campaign}/cells/{cell}.json",
    log:
        "results/{campaign}/logs/{cell}.log",
    wildcard_constraints:
        cell="(cpu|memory|disk|network|gpu)/.+/[0-9]+",
    priority: RUN.priority
    threads: RUN.threads
    # Time, memory, nodes and CPUs, and what jobs share, for executors other than peakmark's.
    resources:
        **RUN.resources,
    # Snakemake asks for a function's signature again for each cell, and of a method twice.
    params:
        fingerprint=lambda wildcards: RUN.fingerprint(wildcards),
    shell:
        MEASURE
        + " --plan results/{wildcards.campaign}/plan.json --cell {wildcards.cell:q} 2> {log:q}"


# The records are no declared outputs: Snakemake would delete the finished ones of a job that fails later.
rule measure_job:
    input:
        RUN.job_inputs,
    output:
        "results/{campaign}/nodes/{job}",
    log:
        "results/{campaign}/logs/nodes/{job}.log",
    wildcard_constraints:
        job="[^/]+[.](own|disk|pair|together)([.][0-9]+)?",
    threads: RUN.threads
    resources:
        **RUN.resources,
    params:
        fingerprint=RUN.job_fingerprint,
    shell:
        MEASURE
        + " --plan results/{wildcards.campaign}/plan.json --job {wildcards.job:q} 2> {log:q}"
