# Rows -> tables. report() is for snakemake --report.


rule tables:
    input:
        rules.rows.output,
    output:
        [
            for_report(name, BY_NAME[name].full_title)
            for name in tables_of(RUN.plan.cells)
        ],
        for_report("runs", "Every run", "runs"),
    log:
        f"{RUN.folder}/logs/tables.log",
    localrule: True
    conda:
        "../envs/peakmark.yaml"
    params:
        campaign=subpath(output[0], ancestor=2),
        named=campaign.digest(RUN.plan.config.report),
    shell:
        "peakmark tables {params.campaign:q} 2> {log:q}"
