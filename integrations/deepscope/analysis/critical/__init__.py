"""What holds a step up from its end to its beginning: who waited for whom, the chain of it, and what it hangs on."""
