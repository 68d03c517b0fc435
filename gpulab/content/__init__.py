"""The exercises of the labs, a package for each lab, with the results that are expected beside them."""
