# Tables and figures -> the PDF.


rule report:
    input:
        rules.tables.output,
    output:
        f"{CAMPAIGN}/report.pdf",
    log:
        f"{CAMPAIGN}/logs/report.log",
    localrule: True
    params:
        campaign=subpath(output[0], parent=True),
    shell:
        "peakmark report {params.campaign:q} > {log:q} 2>&1"
