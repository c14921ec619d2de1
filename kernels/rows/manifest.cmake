# Compiled at run time: no rows.
ballast_oclgrind_filter(FusedRows.N* FusedRows.BoolSteps)
