"""The paper's quality filter: call the catalog's APIs, judge what comes back, keep the results."""
