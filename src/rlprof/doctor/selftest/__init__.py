"""Does rlprof work here? The whole way on a training whose truth is known."""
