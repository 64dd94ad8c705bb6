# Rows -> figures, the PDF and the HTML report, and page one as text. report() is for snakemake --report.


rule report:
    input:
        rules.rows.output,
    output:
        report(
            f"{RUN.folder}/report.pdf",
            caption="../reports/snakemake/pdf.rst",
            category="Report",
            labels={"report": "PDF"},
        ),
        report(
            f"{RUN.folder}/report.html",
            caption="../reports/snakemake/html.rst",
            category="Report",
            labels={"report": "HTML page"},
        ),
        f"{RUN.folder}/summary.md",
        f"{RUN.folder}/summary.json",
        report(
            directory(f"{RUN.folder}/figures"),
            patterns=["{figure}.svg"],
            caption="../reports/snakemake/figure.rst",
            category="Figures",
            labels={"figure": "{figure}"},
        ),
    log:
        f"{RUN.folder}/logs/report.log",
    localrule: True
    conda:
        "../envs/peakmark.yaml"
    params:
        campaign=subpath(output[0], parent=True),
        named=campaign.digest(RUN.plan.config.report),
        captions=captions(),
    shell:
        "peakmark report {params.campaign:q} > {log:q} 2>&1"
