# Tables -> figures, the PDF and the HTML page: of one reading of the records. report() is for snakemake --report.


rule report:
    input:
        rules.tables.output,
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
    params:
        campaign=subpath(output[0], parent=True),
        made_by=makers.of_report(RUN.plan.config["report"]),
        captions=captions.texts(),
    shell:
        "peakmark report --html {params.campaign:q} > {log:q} 2>&1"
