# The own kernels: plain C, compiled once, choosing the instruction set when they run.


rule kernels:
    input:
        build.sources(),
    output:
        build.programs(),
    log:
        "build/kernels/build.log",
    localrule: True
    threads: 2
    params:
        sources=str(build.SOURCES),
    shell:
        # make compares with its own eyes; the new date tells Snakemake that it has done so.
        "(make -C {params.sources:q} -j{threads} && touch {output:q}) > {log:q} 2>&1"
