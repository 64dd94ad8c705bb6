# Rows -> tables and figures. report() is for snakemake --report.


rule tables:
    input:
        rules.rows.output,
    output:
        [
            for_report(table.name, table.full_title)
            for table in TABLES
            if RUN.has_table(table)
        ],
        for_report("runs", "Every run", "runs"),
    log:
        f"{RUN.folder}/logs/tables.log",
    localrule: True
    params:
        campaign=subpath(output[0], ancestor=2),
        named=texts.digest(RUN.plan.config["report"]),
    shell:
        "peakmark tables {params.campaign:q} 2> {log:q}"


rule figures:
    input:
        rules.rows.output,
    output:
        report(
            directory(f"{RUN.folder}/figures"),
            patterns=["{figure}.svg"],
            caption="../reports/snakemake/figure.rst",
            category="Figures",
            labels={"figure": "{figure}"},
        ),
    log:
        f"{RUN.folder}/logs/figures.log",
    localrule: True
    params:
        campaign=subpath(output[0], parent=True),
        named=texts.digest(RUN.plan.config["report"]),
        captions=captions(),
    shell:
        "peakmark figures {params.campaign:q} 2> {log:q}"
