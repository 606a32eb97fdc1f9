//! Statistics without assumptions about distributions: medians, order statistics, clusters.
