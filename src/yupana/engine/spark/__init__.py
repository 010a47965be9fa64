"""Work on the workers of Apache Spark. The only package that imports pyspark."""
