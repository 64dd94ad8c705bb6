# Tables -> figures -> the PDF and the HTML page. report() is for snakemake --report.

MADE_BY = makers.of_report(RUN.plan.config["report"])


rule figures:
    input:
        rules.tables.output,
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
        made_by=MADE_BY,
        captions=captions.texts(),
    shell:
        "peakmark figures {params.campaign:q} > {log:q} 2>&1"


rule report:
    input:
        rules.tables.output,
        rules.figures.output,
    output:
        report(
            f"{RUN.folder}/report.pdf",
            caption="../reports/snakemake/pdf.rst",
            category="Report",
            labels={"report": "PDF"},
        ),
    log:
        f"{RUN.folder}/logs/report.log",
    localrule: True
    params:
        campaign=subpath(output[0], parent=True),
        made_by=MADE_BY,
    shell:
        "peakmark report --keep-figures {params.campaign:q} > {log:q} 2>&1"


rule html:
    input:
        rules.tables.output,
        rules.figures.output,
    output:
        report(
            f"{RUN.folder}/report.html",
            caption="../reports/snakemake/html.rst",
            category="Report",
            labels={"report": "HTML page"},
        ),
    log:
        f"{RUN.folder}/logs/html.log",
    localrule: True
    params:
        campaign=subpath(output[0], parent=True),
        made_by=MADE_BY,
    shell:
        "peakmark html --keep-figures {params.campaign:q} > {log:q} 2>&1"
