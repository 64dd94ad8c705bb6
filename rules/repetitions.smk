# Repetitions until a row is sure enough: in rounds, and after each the decision which rows get another.


def records_of_round(number):
    """Records of a round of repetitions, by the decisions after the round before."""
    if number == 0:
        return RUN.records
    before = checkpoints.decide.get(campaign=RUN.plan.campaign, round=number - 1)
    return RUN.records_of_round(number, before.output[0])


def all_records(wildcards):
    """Every record that is needed, round by round, then those of slow nodes that are checked."""
    return [*records_of_rounds(wildcards), *records_of_suspects()]


def records_of_rounds(wildcards):
    """The records by which nodes are judged."""
    return [
        path for number in range(RUN.rounds + 1) for path in records_of_round(number)
    ]


def records_of_suspects():
    """Records of slow nodes that are measured again, beside healthy ones."""
    if not RUN.plan.checks_suspects:
        return []
    chosen = checkpoints.suspects.get(campaign=RUN.plan.campaign)
    return RUN.records_of_suspects(chosen.output[0])


def lost_records(wildcards):
    """Behind tables that still stand, Snakemake would not miss a lost record: it must be asked for by name."""
    return RUN.lost(all_records(wildcards))


# Rows whose number of repetitions depends on what they show: after each round, which of them get another.
checkpoint decide:
    input:
        lambda wildcards: records_of_round(int(wildcards.round)),
    output:
        "results/{campaign}/repetitions/{round}.json",
    log:
        "results/{campaign}/logs/repetitions/{round}.log",
    wildcard_constraints:
        round="[0-9]+",
    localrule: True
    params:
        plan=RUN.digest,
    shell:
        "peakmark decide --plan results/{wildcards.campaign}/plan.json --round {wildcards.round} 2> {log:q}"


# The nodes that are slow by then, and the rows in which they are measured again.
checkpoint suspects:
    input:
        records_of_rounds,
    output:
        "results/{campaign}/repetitions/suspects.json",
    log:
        "results/{campaign}/logs/repetitions/suspects.log",
    localrule: True
    params:
        plan=RUN.digest,
    shell:
        "peakmark decide --plan results/{wildcards.campaign}/plan.json 2> {log:q}"
