"""SafeTab-P: detailed race and ethnicity of persons."""
