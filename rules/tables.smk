# Records -> the long table, from which all else can be rebuilt, and the tables to hand in.


rule tables:
    input:
        RUN.plan_trigger,
        all_records,
    output:
        [for_report(name, title) for name, title in captions.tables().items()],
        for_report("runs", "Every run", "runs"),
        for_report("measurements", "Every measurement", "measurements"),
    log:
        f"{RUN.folder}/logs/tables.log",
    localrule: True
    params:
        campaign=subpath(output[0], ancestor=2),
        plan=RUN.digest,
        made_by=makers.of_tables(RUN.plan.config["report"]),
    shell:
        "peakmark tables {params.campaign:q} 2> {log:q}"
