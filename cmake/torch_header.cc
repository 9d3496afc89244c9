// Nothing but the precompiled header that every file with tensors shares.
