"""Read the facts of a node that any user can read. Limits are computed from them, and reports list them."""
