# Records -> tables, figures, and analysis.json, of which the report is made. report() is for snakemake --report.


rule tables:
    input:
        RUN.plan_trigger,
        RUN.records,
    output:
        [for_report(table.name, table.full_title) for table in TABLES],
        for_report("runs", "Every run", "runs"),
        f"{RUN.folder}/{ANALYSIS}",
        report(
            directory(f"{RUN.folder}/figures"),
            patterns=["{figure}.svg"],
            caption="../reports/snakemake/figure.rst",
            category="Figures",
            labels={"figure": "{figure}"},
        ),
    log:
        f"{RUN.folder}/logs/tables.log",
    localrule: True
    params:
        campaign=subpath(output[0], ancestor=2),
        plan=RUN.digest,
        made_by=digest(RUN.plan.config["report"]),
        captions=captions(),
    shell:
        "peakmark tables {params.campaign:q} 2> {log:q}"
