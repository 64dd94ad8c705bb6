# Repetitions until a row is sure enough: in rounds, and after each the decision which rows get another.


def asked_in(number):
    """Records of a round of repetitions, by the decisions after the round before."""
    return RUN.asked_in(
        number,
        (
            checkpoints.decide.get(campaign=RUN.plan.campaign, round=number - 1).output[
                0
            ]
            if number
            else None
        ),
    )


def all_records(wildcards):
    """Every record that is needed, round by round."""
    return [path for number in range(RUN.rounds + 1) for path in asked_in(number)]


def lost_records(wildcards):
    """Behind tables that still stand, Snakemake would not miss a lost record: it must be asked for by name."""
    return RUN.lost(all_records(wildcards))


# Rows whose number of repetitions depends on what they show: after each round, which of them get another.
checkpoint decide:
    input:
        lambda wildcards: asked_in(int(wildcards.round)),
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
        "peakmark decide --plan results/{wildcards.campaign}/plan.json --round {wildcards.round} --output {output:q} 2> {log:q}"
