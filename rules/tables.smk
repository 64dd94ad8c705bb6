# Records -> the long table, from which all else can be rebuilt, and the tables to hand in.


rule tables:
    input:
        rules.plan.output,
        all_records if ROUNDS else RECORDS,
    output:
        [for_report(name, title) for name, title in captions.tables().items()],
        for_report("runs", "Every run", "runs"),
        for_report("measurements", "Every measurement", "measurements"),
    log:
        f"{CAMPAIGN}/logs/tables.log",
    localrule: True
    params:
        campaign=subpath(output[0], ancestor=2),
        made_by=makers.of_tables(PLAN.config["report"]),
    shell:
        "peakmark tables {params.campaign:q} 2> {log:q}"
