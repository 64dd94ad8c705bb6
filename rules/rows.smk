# Records -> the rows of the campaign, which all that shows it is made of.


rule rows:
    input:
        RUN.records,
    output:
        [f"{RUN.folder}/rows/{name}.csv" for name in FRAMES],
        f"{RUN.folder}/rows/{CAMPAIGN}",
        f"{RUN.folder}/rows/{CHECK}",
    log:
        f"{RUN.folder}/logs/rows.log",
    localrule: True
    conda:
        "../envs/peakmark.yaml"
    params:
        campaign=subpath(output[0], ancestor=2),
        plan=RUN.digest,
        made_by=code_digest(),
    shell:
        "peakmark rows {params.campaign:q} 2> {log:q}"
