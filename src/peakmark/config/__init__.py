"""What users write, read and checked: campaign, site, layouts."""
