"""Outcomes beyond yes and no: censored times, quantiles and predictive distributions."""
