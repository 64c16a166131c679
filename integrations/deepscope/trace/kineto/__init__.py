"""The reader: from the bytes of any Kineto trace, however broken, to columns of events."""
