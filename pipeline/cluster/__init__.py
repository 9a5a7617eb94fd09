"""Places to run: which addresses are safe, certificates, clusters from a settings file, and a check of one."""
