// Nothing but the precompiled headers that other files share.
