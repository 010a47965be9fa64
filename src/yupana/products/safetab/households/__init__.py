"""SafeTab-H: detailed race and ethnicity of households."""
