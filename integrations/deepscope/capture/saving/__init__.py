"""From torch's export to a finished file: header, rewriting, turns of writers, what killed runs left behind."""
