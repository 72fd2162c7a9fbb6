//! Statistics of measured series: histogram, intervals, stopping rule, stalls, random numbers.
