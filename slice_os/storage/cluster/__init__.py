"""An index in a cluster: what is common to all kinds of servers, and a dialect for each."""
