"""SafeTab-P and SafeTab-H: detailed race and ethnicity of persons and of households."""
