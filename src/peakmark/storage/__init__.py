"""Read and write the files of a campaign: records, machine facts and the plan."""
