# What this campaign consists of, on record: the report tells from it what is missing.


rule plan:
    output:
        plan=f"{CAMPAIGN}/plan.json",
        config=f"{CAMPAIGN}/config.json",
    log:
        f"{CAMPAIGN}/logs/plan.log",
    # Before the first cell, never beside one.
    priority: len(PLAN.cells) + 1
    localrule: True
    resources:
        cell=1,
    params:
        # Functions: Snakemake would look for wildcards in a text, and a title may have braces.
        config=lambda wildcards: json.dumps(config, sort_keys=True),
        references=lambda wildcards: json.dumps(
            [one.to_json() for one in PLAN.references]
        ),
        nodes=CLUSTER.nodes if CLUSTER else None,
    shell:
        "peakmark plan --config-json {params.config:q} --write {output.plan:q} > {log:q} 2>&1"
