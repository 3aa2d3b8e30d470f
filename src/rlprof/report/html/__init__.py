"""The HTML report: one file that works offline. Text and tables are made here, charts by the scripts in page/."""
