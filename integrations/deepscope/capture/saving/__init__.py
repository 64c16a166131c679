"""From torch's export to a finished file: header, rewriting, names, folders, what killed runs left behind."""
