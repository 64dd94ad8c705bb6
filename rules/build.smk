# The own kernels: plain C, compiled once, choosing the instruction set when they run.


rule kernels:
    input:
        glob_wildcards("src/kernels/{path}").path
        and expand(
            "src/kernels/{path}", path=glob_wildcards("src/kernels/{path}").path
        ),
    output:
        expand(
            "build/kernels/{kernel}",
            kernel=["cpubench", "rambench", "diskbench", "netbench"],
        ),
    log:
        "build/kernels/build.log",
    localrule: True
    threads: 2
    shell:
        "make -C src/kernels -j{threads} > {log:q} 2>&1"
