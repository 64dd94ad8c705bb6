# One job per cell: one instrument at one point, once.


rule measure:
    input:
        kernels=kernels_first,
    output:
        f"{CAMPAIGN}/cells/{{subsystem}}/{{instrument}}/{{point}}/{{node}}/{{repetition}}.json",
    log:
        f"{CAMPAIGN}/logs/{{subsystem}}/{{instrument}}/{{point}}/{{node}}/{{repetition}}.log",
    wildcard_constraints:
        subsystem="cpu|memory|disk|network",
        instrument="[a-z0-9-]+",
        point="[^/]+",
        node="[^/]+",
        repetition="[0-9]+",
    threads: lambda wildcards: cell(wildcards).concurrency
    resources:
        # The profile allows one at a time: nothing else may run beside a measurement.
        cell=1,
        estimate_ms=lambda wildcards: plan.milliseconds(cell(wildcards)),
        runtime=lambda wildcards: plan.minutes(cell(wildcards)),
        mem_mb=lambda wildcards: plan.megabytes(cell(wildcards)),
    params:
        cell=lambda wildcards: cell(wildcards).spec(),
        tool=lambda wildcards: config.get("tools", {}).get(wildcards.instrument, "auto"),
    shell:
        "peakmark measure --cell {params.cell:q} --tool {params.tool:q} --output {output:q} 2> {log:q}"
