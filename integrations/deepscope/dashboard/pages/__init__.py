"""What each page shows of a profile, a module a page: its answer's structs, and the function that fills them."""
