"""From what a ledger recorded to answers: one question a file. Nothing here prints."""
