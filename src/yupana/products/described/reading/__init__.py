"""Read a description of tables: TOML or JSON, with every fault named at once, each with its line. Public."""
