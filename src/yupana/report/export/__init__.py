"""A release in the forms that offices publish: workbook, SDMX, and tables with labels; each read back and compared."""
