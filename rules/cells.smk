# One job per cell: one instrument at one point, once. On a cluster, if so configured, a job for several of them.


rule kernels:
    input:
        kernel_build.sources(),
    output:
        # Another run may have compiled them by now and measure with them.
        update(kernel_build.programs()),
    log:
        kernel_build.folder() / "build.log",
    localrule: True
    conda:
        "../envs/peakmark.yaml"
    threads: 2
    params:
        make=lambda wildcards: kernel_build.make_command(),
    shell:
        "export MAKEFLAGS=-j{threads}; ({params.make}) > {log:q} 2>&1"


# A job measures one cell, or several of them. The records of several are no declared outputs: Snakemake would
# delete the finished ones of a job that fails later.
rule measure:
    input:
        RUN.inputs,
    output:
        RUN.output(RUN.pattern),
    log:
        RUN.log(RUN.pattern),
    wildcard_constraints:
        subsystem="[^/]+",
        instrument="[^/]+",
        workload="[^/]+",
        block="[^/_]+",
        concurrency="[^/_]+",
        node="[^/]+",
        repetition="[^/]+",
    priority: RUN.priority
    conda:
        "../envs/peakmark.yaml"
    threads: RUN.threads
    # Time, memory, nodes and CPUs, and what jobs share, for executors other than peakmark's.
    resources:
        **RUN.resources,
    # Snakemake asks for a function's signature again for each cell, and of a method twice.
    params:
        fingerprint=lambda wildcards: RUN.fingerprint(wildcards),
    shell:
        f"{MEASURE} {RUN.option} 2> {{log:q}}"
