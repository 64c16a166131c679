"""`%load_ext deepscope`: cells that are recorded, and shown with what each of their lines costs."""
