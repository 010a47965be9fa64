"""From records to exact counts. Everything here is confidential: results leave only through the ledger's door."""
