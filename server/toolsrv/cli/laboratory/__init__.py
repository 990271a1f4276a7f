"""``toolsrv lab``: the commands of the laboratory; the work is done by ``toolsrv_lab``."""
