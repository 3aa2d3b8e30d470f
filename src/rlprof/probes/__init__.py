"""What rlprof knows of other libraries: one file a library. Attached, their functions are timed without an edit."""
