"""The rule engine: case files → checked rules → layers → matcher → chained facts with their proofs → diagnosis."""
