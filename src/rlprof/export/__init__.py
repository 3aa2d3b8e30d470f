"""`rlprof export`: a session in the formats of other tools."""
