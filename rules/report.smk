# Tables and figures -> the PDF.


rule report:
    input:
        rules.tables.output,
    output:
        f"{CAMPAIGN}/report.pdf",
    log:
        f"{CAMPAIGN}/logs/report.log",
    localrule: True
    shell:
        "{PEAKMARK} report {CAMPAIGN:q} 2> {log:q}"
