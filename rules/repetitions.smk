# Repetitions until a row is sure enough: in rounds, and after each the decision which rows get another.

from pathlib import Path

from peakmark.planning import adaptive

# After the last round nothing is left to decide, but the decision tells what was spared.
ROUNDS = 0 if BY_NODE else adaptive.rounds(PLAN.criteria)


def asked_in(number):
    """Records of a round of repetitions, by the decisions after the round before."""
    if number == 0:
        return RECORDS
    path = checkpoints.decide.get(round=number - 1).output[0]
    cells = adaptive.asked(PLAN.cells, PLAN.criteria, adaptive.read(Path(path)), number)
    return [path, *(PLAN.record_name(cell) for cell in cells)]


def asked_before(wildcards):
    return asked_in(int(wildcards.round))


def all_records(wildcards):
    """Every record that is needed, round by round."""
    return RECORDS + [
        path for number in range(1, ROUNDS + 1) for path in asked_in(number)
    ]


# Rows whose number of repetitions depends on what they show: after each round, which of them get another.
checkpoint decide:
    input:
        plan=rules.plan.output.plan,
        records=asked_before,
    output:
        f"{CAMPAIGN}/repetitions/{{round}}.json",
    log:
        f"{CAMPAIGN}/logs/repetitions/{{round}}.log",
    wildcard_constraints:
        round="[0-9]+",
    localrule: True
    shell:
        "peakmark decide --plan {input.plan:q} --round {wildcards.round} --output {output:q} 2> {log:q}"
