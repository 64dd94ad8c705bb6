# Records -> the long table, from which all else can be rebuilt, and the tables to hand in.


rule tables:
    input:
        rules.plan.output,
        all_records if ROUNDS else RECORDS,
    output:
        expand(
            f"{CAMPAIGN}/tables/{{table}}.csv",
            table=[
                "cpu",
                "memory_throughput",
                "memory_latency",
                "disk_throughput",
                "disk_latency",
                "disk_iops",
                "network_throughput",
                "network_latency",
                "runs",
                "measurements",
            ],
        ),
    log:
        f"{CAMPAIGN}/logs/tables.log",
    localrule: True
    params:
        campaign=subpath(output[0], ancestor=2),
    shell:
        "peakmark tables {params.campaign:q} 2> {log:q}"
