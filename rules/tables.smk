# Rows -> tables. report() is for snakemake --report.


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
        named=campaign.digest(RUN.plan.config.report),
    shell:
        "peakmark tables {params.campaign:q} 2> {log:q}"
