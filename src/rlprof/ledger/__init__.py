"""Spans, lanes and the account of time: a C core and its Python twin."""
