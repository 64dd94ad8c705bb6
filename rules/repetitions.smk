# Slow nodes and suspected links are measured again, when all else is measured.


def records_of_suspects():
    """Records of slow nodes that are measured again, beside healthy ones."""
    if not RUN.plan.checks_suspects:
        return []
    chosen = checkpoints.suspects.get(campaign=RUN.plan.campaign)
    return RUN.records_of_suspects(chosen.output[0])


def all_records(wildcards):
    """Every record that is needed."""
    return [*RUN.records, *records_of_suspects()]


def lost_records(wildcards):
    """Behind tables that still stand, Snakemake would not miss a lost record: it must be asked for by name."""
    return RUN.lost(all_records(wildcards))


# The nodes that are slow by then, and the rows in which they are measured again.
checkpoint suspects:
    input:
        RUN.records,
    output:
        "results/{campaign}/repetitions/suspects.json",
    log:
        "results/{campaign}/logs/repetitions/suspects.log",
    localrule: True
    params:
        plan=RUN.digest,
    shell:
        "peakmark decide --plan results/{wildcards.campaign}/plan.json 2> {log:q}"
