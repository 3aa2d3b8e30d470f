"""Records a training without edits to it, together with the processes that it starts."""
