"""Read and check the files that users write: campaign, site, layouts."""
