"""`rlprof serve`: sessions in the browser, live."""
