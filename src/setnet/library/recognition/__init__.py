"""Who a face is: what similarities mean, how sure a match is, and which saved person it is."""
